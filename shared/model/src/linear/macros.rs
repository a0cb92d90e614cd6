//! What becomes constants of a kernel.

/// Does `call`, in which `LINES` are those of memory that a kernel asks for, for each two that it reads, to do
/// what `ahead` says.
macro_rules! asking {
    ($ahead:expr, $lines:ident => $call:expr) => {
        match $ahead {
            Ahead::None => {
                const $lines: usize = 0;
                $call
            }
            Ahead::Half(_) => {
                const $lines: usize = 1;
                $call
            }
            Ahead::Soon | Ahead::From(_) => {
                const $lines: usize = 2;
                $call
            }
        }
    };
}

/// Does `part` for `first..first + COUNT` of `rows` rows, 1 to 6: as they are, or in two parts as even as can be.
/// Sums of 32 outputs in f32, or of sixteen and what they are made of, fill the registers of AVX2 at three rows.
macro_rules! in_threes {
    ($rows:expr, $count:ident, $first:ident => $part:expr) => {
        match $rows {
            1 => in_threes!(@ 1, 0, $count, $first, $part),
            2 => in_threes!(@ 2, 0, $count, $first, $part),
            3 => in_threes!(@ 3, 0, $count, $first, $part),
            4 => {
                in_threes!(@ 2, 0, $count, $first, $part);
                in_threes!(@ 2, 2, $count, $first, $part);
            }
            5 => {
                in_threes!(@ 3, 0, $count, $first, $part);
                in_threes!(@ 2, 3, $count, $first, $part);
            }
            6 => {
                in_threes!(@ 3, 0, $count, $first, $part);
                in_threes!(@ 3, 3, $count, $first, $part);
            }
            _ => unreachable!("a tile has 1 to 6 rows"),
        }
    };
    (@ $rows:literal, $at:literal, $count:ident, $first:ident, $part:expr) => {{
        const $count: usize = $rows;
        let $first: usize = $at;
        $part
    }};
}
