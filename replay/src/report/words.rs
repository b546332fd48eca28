//! Words of the field, explained where they stand: a button that opens what the word means, without a script.

use pages::markup::{Element, div, element};

/// A word and what it means.
struct Word {
    id: &'static str,
    word: &'static str,
    meaning: &'static str,
}

const WORDS: [Word; 10] = [
    Word {
        id: "critical-path",
        word: "critical path",
        meaning: "The chain of causes that ended last: followed back from the job's end, at each moment what the job waited for. \
                  What does not lie on it could take longer without the job taking longer.",
    },
    Word {
        id: "recorded",
        word: "recorded",
        meaning: "As the capture says that it was on the real cluster: nothing is simulated.",
    },
    Word {
        id: "heartbeat",
        word: "heartbeat",
        meaning: "A request that a daemon or an ApplicationMaster sends at a fixed pace. News travels with the next one, so that \
                  it waits even on a fast network.",
    },
    Word {
        id: "container",
        word: "container",
        meaning: "A place for one task on a host, given by YARN. With none free, a task waits until another one ends.",
    },
    Word {
        id: "shuffle",
        word: "shuffle",
        meaning: "Reduces fetch their parts of the outputs of all maps, over the network where those lie on other hosts.",
    },
    Word {
        id: "attempt",
        word: "attempts",
        meaning: "A task is tried as often as it fails, and now and then twice at once; each try is an attempt.",
    },
    Word {
        id: "mean",
        word: "mean over an interval",
        meaning: "Bytes of an interval, divided by its width. Within it a link may have been full for a moment and idle for the \
                  rest: a queue and lost packets show that, a low mean does not rule it out.",
    },
    Word {
        id: "transfer-time",
        word: "transfer time",
        meaning: "From the moment at which a message's first byte leaves until its last one has arrived.",
    },
    Word {
        id: "error",
        word: "error",
        meaning: "How far a replay is from the recording where the experiment says that it models the recorded network \
                  (workload.recorded_network): there, nothing should differ. On any other network the difference is a change, \
                  and the report calls it so.",
    },
    Word {
        id: "twice-cpu",
        word: "at most",
        meaning: "Half of what the critical path computes (and reads from disks), while all other waits stay as long as they are: \
                  then the job still has to go along this path, so it cannot save more. A replay with workload.cpu_factor = \
                  0.5 says what is really saved.",
    },
];

/// The word of this id, as a button that opens its meaning; called `shown` where that is not empty.
pub(super) fn word(id: &str, shown: &str) -> Element {
    let Some(found) = WORDS.iter().find(|word| word.id == id) else { return element("span").text(shown) };
    element("button")
        .with("type", "button")
        .with("class", "word")
        .with("popovertarget", format!("word-{id}"))
        .text(if shown.is_empty() { found.word } else { shown })
}

/// What all words mean: each is hidden until its button is pressed.
pub(super) fn meanings() -> Element {
    div("words").children(WORDS.iter().map(|word| {
        div("meaning")
            .with("popover", "")
            .with("id", format!("word-{}", word.id))
            .child(element("b").text(word.word))
            .child(element("p").text(word.meaning))
    }))
}

#[cfg(test)]
mod tests {
    use super::{WORDS, word};

    #[test]
    fn each_word_is_found_and_opens_its_own_meaning() {
        for known in &WORDS {
            let button = word(known.id, "").to_string();
            assert!(button.contains(&format!("popovertarget=\"word-{}\"", known.id)), "{button}");
        }
        assert!(!word("unknown", "a word").to_string().contains("button"));
    }
}
