import assert from "node:assert/strict";
import { test } from "node:test";
import { controlOf, filled, underRule, unfilled } from "../src/controls.ts";
import type { Axis, Parameter } from "../src/state.ts";

const parameter = (type: string, range: string): Parameter => ({
  name: "alpha",
  type,
  range,
  default: "0.2",
  help: "",
});

test("each kind of parameter has its control", () => {
  assert.deepEqual(controlOf(parameter("number", "0 to below 1")), { is: "number", step: "any" });
  assert.deepEqual(controlOf(parameter("integer", "1 to 64")), { is: "number", step: "1" });
  assert.deepEqual(controlOf(parameter("number or tuned", "0.8 to 9, or tuned")), { is: "text" });
  assert.deepEqual(controlOf(parameter("something new", "")), { is: "text" });
  const values = ["true", "false"];
  assert.deepEqual(controlOf(parameter("boolean", "true or false")), { is: "choice", values });
  const rules = { is: "choice", values: ["chow", "opt-log"] };
  assert.deepEqual(controlOf(parameter("name", "chow, opt-log")), rules);
});

test("a rule sets range and default of alpha alone", () => {
  const rule = { name: "opt", summary: "", least_alpha: -100, most_alpha: 100, default_alpha: 0.5 };
  const ruled = underRule(parameter("number", "-1 to 1"), rule);
  assert.equal(ruled.range, "-100 to 100");
  assert.equal(ruled.default, "0.5");
  const other = { ...parameter("integer", "1 to 64"), name: "window" };
  assert.equal(underRule(other, rule), other);
});

const AXIS: Axis = {
  name: "draft_len",
  help: "",
  default: "auto",
  values: ["auto", "K", "confidence:MIN", "specdec++:H"].map((form) => ({
    form,
    range: "",
    help: "",
  })),
};

test("forms are filled with their number, and found again by their value", () => {
  const cases = [
    ["auto", "", "auto"],
    ["K", "4", "4"],
    ["confidence:MIN", "0.4", "confidence:0.4"],
    ["specdec++:H", "0.7:0", "specdec++:0.7:0"],
  ] as const;
  for (const [form, number, value] of cases) {
    assert.equal(filled(form, number), value);
    assert.deepEqual(unfilled(AXIS, value), { form, number });
  }
  assert.equal(filled("K", " "), "");
  assert.deepEqual(unfilled(AXIS, ""), { form: "", number: "" });
});
