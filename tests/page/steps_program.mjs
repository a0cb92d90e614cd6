// What needs the real program.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { draftFour } from "./visitor.mjs";

const DIST = join(import.meta.dirname, "../../services/coordinator/page/dist");

/** Calls `act` as soon as the browser has some of an answer's stream. */
async function atFirstData({ page, context }, act) {
  const network = await context.newCDPSession(page);
  await network.send("Network.enable");
  const streams = new Set();
  network.on("Network.responseReceived", ({ requestId, response }) => {
    if (response.mimeType === "text/event-stream") streams.add(requestId);
  });
  network.on("Network.dataReceived", ({ requestId }) => {
    if (streams.delete(requestId)) act();
  });
}

export const programSteps = [
  {
    name: "the program serves the page of this tree, under the policy",
    run: async ({ all }) => {
      const { url } = await all();
      for (const file of ["index.html", "page.js", "page.css"]) {
        const answer = await fetch(url + (file === "index.html" ? "" : file));
        assert.equal(answer.status, 200, file);
        const policy = answer.headers.get("content-security-policy") ?? "";
        assert.match(policy, /default-src 'none'/, file);
        assert.ok(
          (await answer.text()) === (await readFile(join(DIST, file), "utf8")),
          `${file} differs from dist/`,
        );
      }
      const html = await readFile(join(DIST, "index.html"), "utf8");
      assert.deepEqual(html.match(/\w+:\/\/[^"'\s]+|\sstyle=|<script(?![^>]*src)/g), null);
    },
  },
  {
    name: "a chat is answered, token by token, and rounds are shown",
    run: async ({ all, open }) => {
      const visitor = await (await open((await all()).url)).loaded();
      const { page } = visitor;
      await draftFour(page);
      await page.fill("#max_tokens", "64");
      await page.fill("#seed", "3");
      await visitor.ask("What is 3 and 4?");
      const origins = await visitor
        .tokens()
        .evaluateAll((all) => all.map((each) => each.classList[1]));
      assert.ok(origins.includes("accepted"), `origins are ${[...new Set(origins)]}`);
      await page.locator(".lanes g").first().waitFor();
      await visitor.tokens().nth(1).hover();
      await visitor.sees(/drafted, \d+ accepted/);
      const badges = await visitor.text(".answer .badges");
      assert.match(badges, /coupled · lossless · reproducible/);
      await visitor.leave();
      return `${origins.length} tokens`;
    },
  },
  {
    name: "a completion goes on, with log probabilities, and the seed that was used can be pinned",
    run: async ({ all, open }) => {
      const visitor = await (await open((await all()).url)).loaded();
      const { page } = visitor;
      await page.check("#mode-complete", { force: true });
      await page.check("#logprobs");
      await page.fill("#max_tokens", "24");
      await visitor.ask("Once upon a time");
      await visitor.tokens().nth(2).hover();
      await visitor.sees(/Log probability: /);
      const first = await visitor.text(".turn:last-child .output");
      await page.getByRole("button", { name: "Pin", exact: true }).click();
      assert.match(await visitor.text(".seed"), new RegExp(await page.inputValue("#seed")));
      await page.getByRole("button", { name: "Retry" }).click();
      await visitor.answered();
      assert.equal(
        await visitor.text(".turn:last-child .output"),
        first,
        "a seed gives the same text",
      );
      await visitor.leave();
    },
  },
  {
    name: "every method that is served generates",
    long: true,
    run: async ({ all, open }) => {
      const visitor = await (await open((await all()).url)).loaded();
      const { page } = visitor;
      await page.check("#mode-complete", { force: true });
      await page.fill("#max_tokens", "16");
      const methods = await page.$$eval("#pane-0-method option:not([disabled])", (all) =>
        all.map(({ value }) => value),
      );
      for (const method of methods) {
        await page.selectOption("#pane-0-method", method);
        await visitor.ask("Once upon a time");
        const error = await visitor.text(".turn:last-child .answer .error");
        assert.equal(error, "", method);
        assert.ok(
          (await visitor.text(".turn:last-child .output")).length > 0,
          `${method} wrote nothing`,
        );
      }
      await visitor.leave();
      return methods.join(", ");
    },
  },
  {
    name: "a field that is refused is named where it stands",
    run: async ({ all, open }) => {
      const visitor = await (await open((await all()).url)).loaded();
      const { page } = visitor;
      await page.selectOption("#pane-0-method", "lossy");
      await page.fill("#pane-0-alpha", "7");
      await visitor.ask("hello");
      assert.match(await visitor.text(".answer .error"), /alpha.*out of range/);
      assert.equal(await page.getAttribute("#pane-0-alpha", "aria-invalid"), "true");
      await page.fill("#pane-0-alpha", "");
      await page.fill("#top_p", "7");
      await visitor.ask("hello");
      assert.match(await visitor.text("#top_p-problem"), /top_p/);
      await visitor.leave();
    },
  },
  {
    name: "the target alone gives the same text as the default method",
    run: async ({ all, open }) => {
      const visitor = await (await open((await all()).url)).loaded();
      const { page } = visitor;
      await draftFour(page);
      await visitor.ask("What is 5 and 6?");
      await page.getByRole("button", { name: "Measure the target alone" }).click();
      await visitor.sees(/The texts are identical/);
      const told = await visitor.text(".baseline p");
      await visitor.leave();
      return told;
    },
  },
  {
    name: "side by side: identical where it is promised, the first difference where not",
    run: async ({ all, open }) => {
      const visitor = await (await open((await all()).url, { width: 1600 })).loaded();
      const { page } = visitor;
      await page.check("#sideBySide");
      await page.selectOption("#pane-1-method", "target-only");
      await visitor.ask("What is 5 and 6?");
      await visitor.sees(/The texts are identical/);
      await page.selectOption("#pane-1-method", "draft-only");
      await page.selectOption("#order", "once");
      // An answer may be short and the same by chance, a long text is not.
      await page.check("#mode-complete", { force: true });
      await page.fill("#max_tokens", "120");
      await visitor.ask("Once upon a time");
      await visitor.sees(/differ from token \d+ on/);
      assert.equal(await page.locator(".turn:last-child .differs").count(), 2);
      await visitor.leave();
    },
  },
  {
    name: "the drafter is killed in the middle: the page says so, and the text goes on",
    run: async ({ three, open }) => {
      const { url, killDrafter, hold, goOn } = await three();
      const visitor = await (await open(url)).loaded();
      const { page } = visitor;
      await page.check("#mode-complete", { force: true });
      await draftFour(page);
      await page.fill("#max_tokens", "400");
      await page.fill("#seed", "8");
      // The text comes quicker than a test can act, so it is held after its first tokens.
      await atFirstData(visitor, hold);
      await visitor.send("Once upon a time");
      await visitor.tokens().first().waitFor();
      await page.waitForTimeout(300);
      const before = await visitor.tokens().count();
      killDrafter();
      goOn();
      await visitor.answered(60_000);
      await visitor.sees(/Went on without the drafter: /);
      const after = await visitor.tokens().count();
      assert.ok(after > before, "no more text came");
      assert.equal(
        await visitor
          .tokens()
          .last()
          .evaluate((each) => each.classList[1]),
        "target",
      );
      const said = await visitor.text(".answer .notice");
      await visitor.leave();
      return `${before} tokens before, ${after} in all; ${said}`;
    },
  },
  {
    name: "a token is asked for, a wrong one is refused, a right one is kept",
    run: async ({ withToken, open }) => {
      const visitor = await open((await withToken()).url);
      const { page } = visitor;
      await page.locator("dialog[open]").waitFor();
      await page.fill("#token", "wrong-token-of-this-test");
      await page.keyboard.press("Enter");
      await visitor.sees(/unknown here/);
      await page.fill("#token", "a-token-of-this-test");
      await page.keyboard.press("Enter");
      await visitor.loaded();
      await page.fill("#max_tokens", "8");
      await visitor.ask("hello");
      assert.ok((await visitor.tokens().count()) > 0);
      const kept = await page.evaluate(() =>
        JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie]),
      );
      assert.equal(kept, '[{},{},""]', "a token outlives the page");
      await visitor.leave();
    },
  },
  {
    name: "a server that is gone is told, what came is kept, and a retry works when it is back",
    long: true,
    run: async ({ all, open }) => {
      const visitor = await (await open((await all()).url)).loaded();
      const { page, context } = visitor;
      await context.setOffline(true);
      await visitor.ask("hello");
      await visitor.sees(/connection to the server was lost/);
      await context.setOffline(false);
      await page.getByRole("button", { name: "Retry" }).click();
      await visitor.answered();
      assert.ok((await visitor.tokens().count()) > 0);
      await visitor.leave();
    },
  },
];
