//! Outputs of any kind, cut anywhere.

use super::*;

/// Pieces of outputs, right ones and wrong ones.
const SCRAPS: [&str; 34] = [
    "<tool_call>",
    "</tool_call>",
    "<think>",
    "</think>",
    "<function=",
    "weather",
    ">",
    "<parameter=city>",
    "</parameter>",
    "</function>",
    "[TOOL_CALLS]",
    "[ARGS]",
    "<|python_tag|>",
    "<|tool_call|>",
    "functools",
    "<｜tool▁call▁begin｜>",
    "<｜tool▁sep｜>",
    "<｜tool▁call▁end｜>",
    "<|channel|>",
    "<|message|>",
    "commentary to=functions.x ",
    "{",
    "}",
    "[",
    "]",
    "\"name\": ",
    "\"weather\"",
    "\"arguments\": ",
    ", ",
    "\"",
    "\\",
    "\n",
    " 12",
    "é<",
];

/// Whatever a model writes, it is read alike however it is cut.
#[test]
fn what_is_read_does_not_depend_on_how_the_output_was_cut() {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut some = |most: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % most as u64) as usize
    };
    for form in all_forms() {
        for begins_in_reasoning in [false, true] {
            for _ in 0..3_000 {
                let output: String = (0..some(14)).map(|_| SCRAPS[some(SCRAPS.len())]).collect();
                let special = some(2) == 0;
                let mut reading = reading(form, special);
                reading.begins_in_reasoning = begins_in_reasoning;
                let whole = read(&reading, &output, |_| false);
                let single = read(&reading, &output, |_| true);
                assert_eq!(
                    whole, single,
                    "{}: {output:?}, special {special}",
                    form.name
                );
                let step = 2 + some(6);
                let steps = read(&reading, &output, |at| at % step == 0);
                assert_eq!(
                    whole, steps,
                    "{}: {output:?} by {step}, special {special}",
                    form.name
                );
            }
        }
    }
}
