// What the mock server tells of methods: two that exist, with a parameter of each kind, and one that is not allowed.

const NUMBER = {
  name: "alpha",
  type: "number",
  range: "0 to below 1",
  default: "0.2",
  help: "leniency",
};
const RULE = {
  name: "rule",
  type: "name",
  range: "chow, opt, token-v3",
  default: "token-v3",
  help: "deferral rule: where the target decides instead of the draft model",
};
const BETA = {
  name: "beta",
  type: "number or tuned",
  range: "0.8 to 1000000, or tuned",
  default: "1",
  help: "divides p in the residual",
};
const WINDOW = {
  name: "window",
  type: "integer",
  range: "1 to 64",
  default: "10",
  help: "most draft tokens",
};
const FLAG = {
  name: "mean",
  type: "boolean",
  range: "true or false",
  default: "true",
  help: "the mean, not the sum",
};

function method(name, summary, promises, parameters, allowed = true) {
  return {
    name,
    aliases: [],
    summary,
    lossless: promises.includes("lossless"),
    reproducible: promises.includes("reproducible"),
    source: "Example et al. 2024",
    plan: "speculative",
    target: "exact",
    verification: "coupled",
    needs_draft_probs: false,
    allowed,
    parameters,
  };
}

const value = (form, range = "", help = "") => ({ form, range, help });

export const METHODS = {
  methods: [
    method("coupled", "by default: the output is the target's own", "lossless reproducible", []),
    method("lossy", "for somewhat fewer target calls, with one number to tune", "", [
      NUMBER,
      BETA,
      FLAG,
    ]),
    method("spec-cascade", "if the draft model is good enough", "reproducible", [
      RULE,
      NUMBER,
      WINDOW,
    ]),
    method("bild", "for few target calls at temperature 0", "reproducible", [WINDOW], false),
  ],
  rules: [
    { name: "chow", summary: "", least_alpha: 0, most_alpha: 1, default_alpha: 0.5 },
    { name: "opt", summary: "", least_alpha: -100, most_alpha: 100, default_alpha: 0.5 },
    { name: "token-v3", summary: "", least_alpha: -1, most_alpha: 1, default_alpha: 0.3 },
  ],
  axes: [
    {
      name: "draft_len",
      help: "Draft tokens a round",
      default: "auto",
      values: [
        value("auto", "", "as many as pay"),
        value("K", "1 to 64", "always this many"),
        value("confidence:MIN", "0 to 1", "stop before a token where the maximum is below this"),
      ],
    },
    {
      name: "schedule",
      help: "Whether target and drafts take turns",
      default: "auto",
      values: [value("auto"), value("rounds"), value("stream")],
    },
  ],
};
