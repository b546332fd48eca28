//! What heads may take where all switches are alike: kept by what it depends on ([`Routes::case`]), in directions.

use super::Output;
use super::offers::{KnownOffers, Offer};
use crate::routing::Routes;
use crate::topology::LinkId;

/// Where there is no link in a direction, or a link has none.
const NONE: u8 = u8::MAX;

/// What heads may take, by case; empty where switches are not alike.
pub(super) struct Cases {
    /// The outputs of these offers are directions, and their VLs are classes.
    known: Vec<KnownOffers>,
    directions: usize,
    /// By switch, then direction: the bit of the output.
    bits: Vec<u8>,
    /// By input: the direction of its link.
    inputs: Vec<u8>,
}

impl Cases {
    /// Nothing is known yet of those of `routes`, in a network of so many switches with these links, by where they begin, and the ends of
    /// links `inputs`.
    pub fn new(routes: &Routes, switches: usize, outputs: &[Output], inputs: impl Iterator<Item = LinkId>) -> Self {
        let (cases, directions) = (routes.cases(), routes.directions().unwrap_or(0));
        if cases == 0 {
            return Self { known: Vec::new(), directions: 0, bits: Vec::new(), inputs: Vec::new() };
        }
        let mut bits = vec![NONE; switches * directions];
        for output in outputs.iter().filter(|output| !output.from_host) {
            if let Some(direction) = routes.direction_of(output.link) {
                bits[output.from as usize * directions + usize::from(direction)] = output.bit;
            }
        }
        let inputs = inputs.map(|link| routes.direction_of(link).unwrap_or(NONE)).collect();
        Self { known: vec![KnownOffers::NOTHING; cases], directions, bits, inputs }
    }

    /// The direction of the link that ends at `input`; `None` from a host, or where switches are not alike.
    #[inline]
    pub fn direction(&self, input: u32) -> Option<u8> {
        self.inputs.get(input as usize).copied().filter(|direction| *direction != NONE)
    }

    /// The bits of the outputs of `switch`, by direction.
    #[inline]
    fn bits_of(&self, switch: u32) -> &[u8] {
        &self.bits[switch as usize * self.directions..][..self.directions]
    }

    /// Fills `offers` with what a head of a `case` may take at `switch` whose VL of class 0 is `base`. Returns whether that is known.
    #[inline]
    pub fn offer(&self, case: usize, switch: u32, base: u8, offers: &mut Vec<Offer>) -> bool {
        let (known, bits) = (self.known[case].offers(), self.bits_of(switch));
        offers.extend(known.iter().map(|offer| Offer {
            output: bits[usize::from(offer.output)],
            vl: base + offer.vl,
            ..*offer
        }));
        !known.is_empty()
    }

    /// Keeps what a head of a `case` may take, which is this at `switch` with `base` as VL of class 0, if that is little.
    pub fn keep(&mut self, case: usize, switch: u32, base: u8, offers: &[Offer]) {
        let bits = self.bits_of(switch);
        let direction = |bit: u8| bits.iter().position(|other| *other == bit).and_then(|at| u8::try_from(at).ok());
        let in_directions =
            |offer: &Offer| Some(Offer { output: direction(offer.output)?, vl: offer.vl - base, ..*offer });
        if let Some(offers) = offers.iter().map(in_directions).collect::<Option<Vec<Offer>>>() {
            self.known[case].keep(&offers);
        }
    }
}
