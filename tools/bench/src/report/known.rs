//! The tables and columns of each command, so that a name that is nowhere is refused before anything is measured.

/// What a command's report has.
pub(super) struct KnownColumns {
    /// The command, as it is called on the command line.
    pub(super) command: &'static str,
    pub(super) tables: &'static [&'static str],
    /// Names of columns; a `*` stands for any text, here and in headings.
    pub(super) columns: &'static [&'static str],
    /// What stands above columns that are not called as they are named.
    pub(super) headings: &'static [&'static str],
}

impl KnownColumns {
    /// Returns what the report of `command` has.
    pub(super) fn of(command: &str) -> Option<&'static Self> {
        KNOWN.iter().find(|known| known.command == command)
    }

    /// Returns whether there is a column of this name, or under this heading.
    pub(super) fn has_column(&self, name: &str) -> bool {
        let is_named = |column: &&str| match column.split_once('*') {
            Some((before, after)) => name.starts_with(before) && name.ends_with(after),
            None => *column == name || column.replace('_', " ") == name,
        };
        self.columns.iter().chain(self.headings).any(is_named)
    }
}

#[rustfmt::skip]
pub(super) const KNOWN: &[KnownColumns] = &[
    KnownColumns {
        command: "batch",
        tables: &["batch"],
        columns: &[
            "on", "format", "context", "temperature", "top_p", "sessions", "token_ms", "tokens_per_second", "ratio",
        ],
        headings: &["ms a token", "tokens/s"],
    },
    KnownColumns {
        command: "capacity",
        tables: &["clients", "capacity"],
        columns: &["drafters", "clients", "slowest", "gamma", "held"],
        headings: &["slowest, tokens/s", "draft forwards a forward", "clients held"],
    },
    KnownColumns {
        command: "compare",
        tables: &["by-kind", "all", "rounds"],
        columns: &[
            "method", "temperature", "kind", "prompts", "baseline_tokens_per_second", "tokens_per_second", "ratio",
            "target_calls_per_token", "mean_acceptance_length", "draft_acceptance_rate", "deferral_rate",
            "wire_bytes_per_round", "tokens", "draft_len", "draft_forward_ms", "drafter_rest_ms",
            "verify_forward_ms", "verifier_rest_ms", "wire_ms",
        ],
        headings: &[
            "target tokens/s", "tokens/s", "calls/token", "tokens/round", "accepted", "deferred", "bytes/round",
        ],
    },
    KnownColumns {
        command: "decode",
        tables: &["steps", "positions", "llama-cpp"],
        columns: &[
            "on", "format", "context", "ms_per_token", "tokens_per_second", "products_ms", "outside_products",
            "weight_bytes", "bandwidth_gb_per_second", "bound_tokens_per_second", "of_bound", "positions", "ms",
            "ratio", "block_ms", "decode_speedup", "block_speedup",
        ],
        headings: &["ms/token", "tokens/s", "products, ms", "outside", "* positions, ms", "GB/s", "bound"],
    },
    KnownColumns {
        command: "device",
        tables: &["operations", "golden", "device"],
        columns: &[
            "outcome", "near", "model", "format", "mb", "load_s", "decode_ms", "gb_per_second", "five_ms",
            "five_ratio", "sixteen_ms", "sixteen_ratio", "batch_ms", "batch_tokens_per_second",
            "prefill_tokens_per_second", "difference", "greedy", "right",
        ],
        headings: &[
            "weights, MB", "load, s", "1 position, ms", "GB/s", "5, ms", "5 / 1", "16, ms", "16 / 1",
            "32 sequences, tokens/s", "prefill, tokens/s", "largest difference", "greedy continuations",
        ],
    },
    KnownColumns {
        command: "distance",
        tables: &["distance", "curves", "ways"],
        columns: &[
            "round_trip_ms", "temperature", "alone_ms", "chain_ms", "tree_ms", "stream_ms", "default_ms", "over_chain", "over_tree",
            "tokens_a_forward", "rows", "sent", "bytes_a_token", "series", "best_ms", "kind", "method", "token_ms", "processor_ms",
        ],
        headings: &[
            "round trip, ms", "target alone", "rounds, chain", "rounds, tree", "over chain or alone", "over all", "drafts sent a token",
            "tokens a forward", "rows a forward", "bytes a token", "best, ms a token", "ms a token",
            "processor ms a token",
        ],
    },
    KnownColumns {
        command: "drafting",
        tables: &["costs", "ways", "best"],
        columns: &[
            "prompts", "family", "method", "tokens", "discard_rate", "verification_rate", "draft_rate",
            "draft_forwards_per_token", "measured_speedup", "kind", "temperature", "target_ms", "position_ms",
            "round_ms", "explained", "cost", "speedup", "gain", "draft_*_ms", "forwards", "fitted", "c=*",
        ],
        headings: &["discard", "verify", "draft", "wall time"],
    },
    KnownColumns {
        command: "http",
        tables: &["http", "streams"],
        columns: &[
            "pair", "clients", "grpc_tokens_per_second", "http_tokens_per_second", "ratio", "streams", "others",
            "freed_ms",
        ],
        headings: &["gRPC, tokens/s", "HTTP, tokens/s", "of which differ", "all freed after they left, ms"],
    },
    KnownColumns {
        command: "kernels",
        tables: &["kernels"],
        columns: &[
            "format", "mb", "outputs", "inputs", "within_cache", "rows", "us", "gb_per_s", "read_gb_per_s",
            "of_read", "of_read_goal", "ratio", "ratio_goal", "misses_goal", "candle_us", "candle_ratio",
            "candle_of_ours",
        ],
        headings: &["MB", "GB/s", "reading, GB/s", "candle/ours"],
    },
    KnownColumns {
        command: "load",
        tables: &["load", "rounds", "step"],
        columns: &[
            "pair", "processes", "temperature", "clients", "up_seconds", "down_seconds",
            "baseline_tokens_per_second", "tokens_per_second", "ratio", "ratios", "series", "log2_clients",
            "percent", "baseline_token_ms_p99", "token_ms_p99", "p99_ratio", "rested", "predicted_gain",
            "measured_gain", "rounds", "drafted", "accepted", "draft_ms", "draft_queue_ms", "draft_forward_ms",
            "draft_batch", "verify_ms", "verify_queue_ms", "verify_forward_ms", "verify_batch",
        ],
        headings: &[
            "settled after, s", "and after, s", "target tokens/s", "tokens/s", "target p99, ms", "p99, ms", "queue",
            "forwards", "batch",
        ],
    },
    KnownColumns {
        command: "papers",
        tables: &[
            "A-tradeoffs", "A-questions", "A-multiples", "B-lengths", "B-heads", "B-thresholds", "C-formulas", "C-drafters",
            "C-positions", "D-toy", "D-blocks", "claims",
        ],
        columns: &[
            "task", "temperature", "method", "setting", "metric", "quality", "quality_error", "target_calls_per_token",
            "relative_latency", "rejection_rate", "speedup", "calls", "best", "gamma", "sampling", "family", "discard_rate",
            "verification_rate", "draft_rate", "modelled", "ms_per_token", "w_rej", "depth", "learnt_kl", "held_out_kl",
            "threshold", "data", "drafts", "ewif", "printed", "position", "accepted", "target", "length", "by_tokens",
            "by_blocks", "ratio", "verification", "requests", "efficiency", "efficiency_error", "gain", "p", "time", "of",
            "says", "found", "holds", "why",
        ],
        headings: &[
            "calls/token", "time over target", "rejected", "speedup at the target's quality", "calls/token there",
            "best quality within its time", "discarded/token", "draft forwards/token", "speedup by forwards", "ms/token", "refusals weighted", "blocks",
            "KL learnt from, nats", "KL held out, nats", "best h", "EWIF",
            "in the paper", "p, q = .75", "accepted by tokens", "by blocks", "tokens a target call", "gain over token",
            "time over token",
        ],
    },
    KnownColumns {
        command: "parts",
        tables: &["parts"],
        columns: &["on", "context", "what", "us", "baseline", "baseline_us", "ratio", "goal"],
        headings: &["against", "its us"],
    },
    KnownColumns {
        command: "port",
        tables: &["port"],
        columns: &["sessions", "rows", "context", "crate_ms", "port_ms", "ratio"],
        headings: &["crate, ms", "port, ms"],
    },
    KnownColumns {
        command: "replay",
        tables: &["recording", "replay"],
        columns: &[
            "model", "vocab_size", "temperature", "top_k", "top_p", "min_p", "draft_len", "seed", "top", "prompts",
            "prompts_planned", "blocks", "positions", "draft_mass_left_out", "target_mass_left_out",
            "measured_block_efficiency", "expected_block_efficiency", "expected_block_efficiency_error", "method",
            "parameters", "verification", "kind", "acceptance", "rejection_rate", "deferral_rate",
            "target_calls_per_token", "block_efficiency", "tv_from_target", "kl_from_target", "tv_draft_target",
        ],
        headings: &[
            "of", "left out of q", "left out of p", "effic.", "expected", "error", "prompts", "accept", "reject",
            "defer", "calls", "TV(π,p)", "KL(p‖π)", "TV(q,p)",
        ],
    },
    KnownColumns {
        command: "serve",
        tables: &["load", "latency", "kinds", "failures"],
        columns: &[
            "rate", "concurrency", "completed", "failed", "seconds", "requests_per_second", "input_tokens_per_second",
            "output_tokens_per_second", "tokens_per_event", "goodput_per_second", "within_slo",
            "draft_acceptance_rate", "mean_acceptance_length", "input_tokens", "output_tokens", "drafts_told_by",
            "drafted", "accepted", "late_ms_max", "ttft_ms_p99", "offered_per_second", "series", "measure", "count",
            "mean_ms", "median_ms", "p90_ms", "p99_ms", "kind", "tokens", "tokens_per_second", "ttft_ms", "tpot_ms",
            "reason", "first",
        ],
        headings: &[
            "requests/s", "input tokens/s", "output tokens/s", "tokens/event", "goodput, requests/s", "within",
            "accepted", "tokens/round", "measured", "mean, ms", "median", "p90", "p99", "output tokens",
            "tokens/s of a request", "ttft, ms", "tpot, ms", "the first one",
        ],
    },
    KnownColumns {
        command: "speedup",
        tables: &["draft-lengths", "speedup", "rounds", "synthetic"],
        columns: &[
            "pair", "synthetic", "temperature", "draft_len", "speedup", "draft_acceptance_rate",
            "baseline_tokens_per_second", "tokens_per_second", "mean_acceptance_length", "prompts", "tokens",
            "description", "scale", "calibrated_acceptance", "draft_forward_ms", "drafter_rest_ms",
            "verify_forward_ms", "verifier_rest_ms", "wire_ms",
        ],
        headings: &["target tokens/s", "tokens/s", "accepted", "tokens/round", "deeper residuals at"],
    },
    KnownColumns {
        command: "sweep",
        tables: &["points"],
        columns: &[
            "task", "method", "series", "values", "temperature", "draft_len", "outputs", "metrics", "quality",
            "quality_*", "standard_error", "standard_error_*", "target_calls_per_token", "tokens_per_second",
            "mean_acceptance_length", "draft_acceptance_rate", "deferral_rate", "wire_bytes_per_round",
            "draft_forward_ms", "drafter_rest_ms", "verify_forward_ms", "verifier_rest_ms", "wire_ms",
        ],
        headings: &[
            "method", "right", "exact", "last-number", "contains", "f1", "bleu", "rouge-2", "rouge-l", "likelihood",
            "reference-likelihood", "score", "calls/token", "tokens/s", "tokens/round", "accepted", "deferred",
        ],
    },
    KnownColumns {
        command: "telemetry",
        tables: &["telemetry"],
        columns: &[
            "sample_ratio", "requests", "tokens", "tokens_per_second", "ratio", "ratio_by_medians", "batches",
            "bytes",
        ],
        headings: &["traced", "tokens/s", "of untraced", "by medians"],
    },
    KnownColumns {
        command: "train-head",
        tables: &["divergence", "calibration", "stopping"],
        columns: &[
            "divergence", "positions", "head", "constant", "predicted", "accepted", "stop", "draft_len", "emitted",
            "tokens_per_second",
        ],
        headings: &["divergence, nats", "best constant"],
    },
    KnownColumns {
        command: "verification",
        tables: &["verification", "cuts"],
        columns: &[
            "cut", "vocab", "softmax_us", "row_us", "ratio", "target", "verification", "proposal", "positions",
            "position_us", "goal", "overlap",
        ],
        headings: &["V"],
    },
];
