//! How long each port has to be connected with each other.

/// A square matrix of times in picoseconds, by sender and receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DemandMatrix {
    size: usize,
    /// Row by row.
    cells: Vec<u64>,
}

impl DemandMatrix {
    /// No demand among `size` ports.
    #[must_use]
    pub fn new(size: usize) -> Self {
        Self { size, cells: vec![0; size * size] }
    }

    /// Ports.
    #[must_use]
    pub const fn size(&self) -> usize {
        self.size
    }

    /// The demand of a pair, ps.
    #[must_use]
    pub fn get(&self, from: usize, to: usize) -> u64 {
        self.cells[from * self.size + to]
    }

    /// The demand of a pair, to be changed.
    pub fn cell(&mut self, from: usize, to: usize) -> &mut u64 {
        &mut self.cells[from * self.size + to]
    }

    /// Whether nothing is to be sent.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        self.cells.iter().all(|&cell| cell == 0)
    }

    /// The greatest demand of a pair.
    #[must_use]
    pub fn greatest(&self) -> u64 {
        self.cells.iter().copied().max().unwrap_or(0)
    }

    /// What each port sends, then what each receives.
    #[must_use]
    pub fn sums(&self) -> (Vec<u64>, Vec<u64>) {
        let (mut rows, mut columns) = (vec![0; self.size], vec![0; self.size]);
        for (row, cells) in rows.iter_mut().zip(self.cells.chunks(self.size)) {
            *row = cells.iter().sum();
            columns.iter_mut().zip(cells).for_each(|(column, cell)| *column += cell);
        }
        (rows, columns)
    }

    /// Adds demand that is not there until all ports send and receive as much as the busiest, first where there is demand
    /// already, so that few circuits are added (`QuickStuff` of Solstice, Liu and others, CoNEXT 2015).
    pub fn stuff(&mut self) {
        let (mut rows, mut columns) = self.sums();
        let most = rows.iter().chain(&columns).copied().max().unwrap_or(0);
        for is_second in [false, true] {
            for (row, cells) in rows.iter_mut().zip(self.cells.chunks_mut(self.size)) {
                for (column, cell) in columns.iter_mut().zip(cells) {
                    if is_second || *cell > 0 {
                        let more = (most - *row).min(most - *column);
                        *cell += more;
                        *row += more;
                        *column += more;
                    }
                }
            }
        }
    }

    /// Rounds each demand up to a multiple of `unit` ps.
    pub fn round_up(&mut self, unit: u64) {
        for cell in &mut self.cells {
            *cell = cell.div_ceil(unit) * unit;
        }
    }
}
