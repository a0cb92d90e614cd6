// How quick it is, on loopback and in this browser.
import assert from "node:assert/strict";

const MOST_PAINT_MS = 100;
const MOST_FRAME_MS = 50;

/**
 * Measures until it is no more than `most`, at most `tries` times: what else this machine does makes a frame
 * long now and then, and never short.
 */
async function best(most, tries, measure) {
  const measured = [];
  while (measured.length < tries && !(Math.min(...measured) <= most))
    measured.push(await measure());
  assert.ok(Math.min(...measured) <= most, `${measured.join(", ")} ms`);
  return measured.join(", ");
}

/** Returns the longest frame while something goes on, 0 if none was above 50 ms. */
async function longestFrame(page, during) {
  await page.evaluate(() => {
    window.frames_ = [];
    new PerformanceObserver((list) => {
      for (const { duration } of list.getEntries()) window.frames_.push(duration);
    }).observe({ type: "long-animation-frame" });
  });
  await during();
  await page.waitForTimeout(200);
  return page.evaluate(() => Math.round(Math.max(0, ...window.frames_)));
}

const told = (frame) => (frame === 0 ? "under 50" : frame);

export const speedSteps = [
  {
    name: `the first paint comes within ${MOST_PAINT_MS} ms`,
    run: async ({ all, open }) => {
      const { url } = await all();
      const visitor = await (await open(url)).loaded();
      const { page } = visitor;
      const paint = () => performance.getEntriesByName("first-contentful-paint")[0]?.startTime;
      const paints = await best(MOST_PAINT_MS, 15, async () => {
        await page.goto("about:blank");
        await page.goto(url);
        await page.waitForFunction(paint);
        return Math.round(await page.evaluate(paint));
      });
      await visitor.leave();
      return `${paints} ms`;
    },
  },
  ...[
    ["coloured tokens", true],
    ["Markdown", false],
  ].map(([as, coloured]) => ({
    name: `2,000 tokens at 4,000 a second as ${as}: no frame above ${MOST_FRAME_MS} ms`,
    run: async ({ mock, open }) => {
      const { url } = await mock();
      let speed = "";
      const frames = await best(MOST_FRAME_MS, 5, async () => {
        const visitor = await (await open(url)).loaded();
        await visitor.page.setChecked("#coloured", coloured);
        const frame = await longestFrame(visitor.page, () => visitor.ask("fast 2000"));
        speed = await visitor.text(".numbers div:nth-child(2) dd");
        await visitor.leave();
        return frame;
      });
      return `longest ${frames.replace(/\b0\b/, "under 50")} ms, ${speed} tokens a second shown`;
    },
  })),
  {
    name: "10,000 tokens of conversation stay usable",
    long: true,
    run: async ({ mock, open }) => {
      const visitor = await (await open((await mock()).url)).loaded();
      const { page } = visitor;
      for (let turns = 0; turns < 5; turns += 1) await visitor.ask("fast 2000");
      const frame = await longestFrame(page, () => visitor.ask("fast 500"));
      const toggle = await longestFrame(page, () => page.setChecked("#coloured", false));
      await visitor.leave();
      assert.ok(frame <= 2 * MOST_FRAME_MS, `${frame} ms while more comes`);
      return `longest frame while more comes ${told(frame)} ms, on changing to Markdown ${told(toggle)} ms`;
    },
  },
];
