import assert from "node:assert/strict";
import { test } from "node:test";
import { Store } from "../src/store.ts";

/** A store whose frames come when the test says so. */
function storeOf<State extends object>(state: State) {
  const frames: (() => void)[] = [];
  const store = new Store(state, (run) => frames.push(run));
  return { store, frames, frame: () => frames.shift()?.() };
}

test("a view is told once a frame, however often its part changed", () => {
  const { store, frames, frame } = storeOf({ count: 0 });
  const seen: number[] = [];
  store.watch(
    ({ count }) => count,
    (count) => seen.push(count),
  );
  for (let at = 0; at < 5; at += 1) store.update(({ count }) => ({ count: count + 1 }));
  assert.deepEqual(seen, [0]);
  assert.equal(frames.length, 1);
  frame();
  assert.deepEqual(seen, [0, 5]);
});

test("a view is not told of what it does not watch, nor of what changed back", () => {
  const { store, frame } = storeOf({ watched: "a", other: 0 });
  const seen: string[] = [];
  store.watch(
    ({ watched }) => watched,
    (watched) => seen.push(watched),
  );
  store.update(() => ({ other: 1 }));
  store.update(() => ({ watched: "b" }));
  store.update(() => ({ watched: "a" }));
  frame();
  assert.deepEqual(seen, ["a"]);
});

test("a view that updates the state is told of it in another frame", () => {
  const { store, frame } = storeOf({ count: 0 });
  const seen: number[] = [];
  store.watch(
    ({ count }) => count,
    (count) => {
      seen.push(count);
      if (count === 1) store.update(() => ({ count: 2 }));
    },
  );
  store.update(() => ({ count: 1 }));
  frame();
  frame();
  assert.deepEqual(seen, [0, 1, 2]);
});
