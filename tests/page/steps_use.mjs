// What a user does, with a server that answers as the step wants.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";

export const useSteps = [
  {
    name: "stop keeps what came, and sends no more",
    run: async ({ mock, open }) => {
      const visitor = await (await open((await mock()).url)).loaded();
      await visitor.send("slow 200");
      await visitor.tokens().nth(3).waitFor();
      await visitor.page.click(".composer .stop");
      await visitor.answered();
      const count = await visitor.tokens().count();
      await visitor.page.waitForTimeout(500);
      assert.equal(await visitor.tokens().count(), count);
      await visitor.sees(/Stopped/);
      await visitor.leave();
    },
  },
  {
    name: "a message can be edited: what follows is cut, and asked anew",
    run: async ({ mock, open }) => {
      const { url, seen } = await mock();
      const visitor = await (await open(url)).loaded();
      const { page } = visitor;
      for (const text of ["one", "two", "three"]) await visitor.ask(text);
      await page.getByRole("button", { name: "Edit" }).nth(1).click();
      await page.locator(".editor textarea:visible").fill("second");
      await page.getByRole("button", { name: "Send anew" }).click();
      await visitor.answered();
      assert.equal(await page.locator(".turn").count(), 2);
      const said = seen
        .at(-1)
        .messages.map(({ role, content }) => (role === "user" ? content : role));
      assert.deepEqual(said, ["one", "assistant", "second"]);
      await visitor.leave();
    },
  },
  {
    name: "a conversation is exported and imported again, to the token",
    run: async ({ mock, open }) => {
      const visitor = await (await open((await mock()).url)).loaded();
      const { page } = visitor;
      await visitor.ask("one");
      const text = await visitor.text(".turn:last-child .output");
      const [download] = await Promise.all([
        page.waitForEvent("download"),
        page.getByRole("button", { name: "Export" }).click(),
      ]);
      const path = await download.path();
      assert.equal(JSON.parse(await readFile(path, "utf8")).turns.length, 1);
      await page.getByRole("button", { name: "New" }).click();
      await page.locator(".turn").waitFor({ state: "detached" });
      const picker = page.locator("#settings input[type=file]");
      await picker.setInputFiles(path);
      await page.locator(".turn").waitFor();
      assert.equal(await visitor.text(".turn:last-child .output"), text);
      await picker.setInputFiles({
        name: "x.json",
        mimeType: "application/json",
        buffer: Buffer.from("{}"),
      });
      await visitor.sees(/x\.json is not a conversation/);
      await visitor.leave();
    },
  },
  {
    name: "a text file goes into the message, and another kind of file is refused",
    run: async ({ mock, open }) => {
      const { url, seen } = await mock();
      const visitor = await (await open(url)).loaded();
      const { page } = visitor;
      const picker = page.locator(".composer input[type=file]");
      const file = (name, content) => ({
        name,
        mimeType: "text/plain",
        buffer: Buffer.from(content),
      });
      await picker.setInputFiles(file("image.png", [137, 80, 0, 255]));
      await visitor.sees(/not a text file/);
      await picker.setInputFiles(file("notes.txt", "remember the owl"));
      await visitor.sees(/notes\.txt, 16 characters/);
      await visitor.ask("read this");
      assert.match(
        seen.at(-1).messages.at(-1).content,
        /^read this\n\nnotes\.txt:\n```\nremember the owl\n```$/,
      );
      await visitor.leave();
    },
  },
  {
    name: "a model without a chat template opens in complete, and says why",
    run: async ({ mock, otherMock, open }) => {
      const { url } = await otherMock({ chat: false });
      const visitor = await (await open(url)).loaded();
      await visitor.sees(/no chat template/);
      assert.equal(await visitor.page.isChecked("#mode-complete"), true);
      assert.equal(await visitor.page.isDisabled("#mode-chat"), true);
      await visitor.leave();
      const other = await (await open((await mock()).url)).loaded();
      assert.equal(await other.page.isChecked("#mode-chat"), true);
      await other.page.selectOption("#model", "other");
      await other.sees(/no chat template/);
      await other.leave();
    },
  },
  {
    name: "all addresses are relative: it works behind a path prefix",
    long: true,
    run: async ({ otherMock, open }) => {
      const { url } = await otherMock({ prefix: "/some/where" });
      const visitor = await (await open(url)).loaded();
      await visitor.ask("one");
      assert.ok((await visitor.tokens().count()) > 0);
      await visitor.leave();
    },
  },
  {
    name: "methods that are not served cannot be chosen; a rule sets the default of alpha",
    run: async ({ mock, open }) => {
      const { url, seen } = await mock();
      const visitor = await (await open(url)).loaded();
      const { page } = visitor;
      assert.equal(await page.locator("#pane-0-method option[value=bild]").isDisabled(), true);
      await page.selectOption("#pane-0-method", "spec-cascade");
      await page.locator("#pane-0-alpha[placeholder='0.3']").waitFor();
      await page.selectOption("#pane-0-rule", "opt");
      await page.locator("#pane-0-alpha[placeholder='0.5']").waitFor();
      await page.fill("#pane-0-alpha", "0.7");
      await visitor.ask("one");
      assert.deepEqual(seen.at(-1).speculation, {
        method: "spec-cascade",
        rule: "opt",
        alpha: 0.7,
      });
      await visitor.leave();
    },
  },
  {
    name: "the slider shows the text up to a round, and playing brings the rest",
    run: async ({ mock, open }) => {
      const visitor = await (await open((await mock()).url)).loaded();
      const { page } = visitor;
      await visitor.ask("one");
      const all = await visitor.tokens().count();
      const slider = page.getByRole("slider");
      await slider.fill("3");
      await visitor.frame();
      const hidden = await page.locator(".token.later").count();
      assert.ok(hidden > 0 && hidden < all, `${hidden} of ${all} are hidden`);
      await page.selectOption(".player select", "1");
      await page.getByRole("button", { name: "Play" }).click();
      await page.waitForFunction(() => document.querySelectorAll(".token.later").length === 0);
      await visitor.leave();
      return `${all - hidden} of ${all} tokens after three rounds`;
    },
  },
  {
    name: "Markdown that is played again comes to the same",
    run: async ({ mock, open }) => {
      const visitor = await (await open((await mock()).url)).loaded();
      const { page } = visitor;
      await page.uncheck("#coloured");
      await visitor.ask("one");
      const rendered = () => page.locator(".output .markdown").innerHTML();
      const whole = await rendered();
      const slider = page.getByRole("slider");
      const rounds = Number(await slider.getAttribute("max"));
      let before = 0;
      for (let round = 1; round <= rounds; round += 1) {
        await slider.fill(String(round));
        await page.locator(".player .at", { hasText: `Round ${round} of` }).waitFor();
        await page.waitForTimeout(30);
        const { length } = await visitor.text(".output");
        assert.ok(length > before, `round ${round} shows no more`);
        before = length;
      }
      assert.equal(await rendered(), whole);
      await visitor.leave();
    },
  },
  {
    name: "errors in the middle and a lost connection keep the text",
    run: async ({ mock, open }) => {
      const visitor = await (await open((await mock()).url)).loaded();
      for (const [word, said] of [
        ["error", /no verifier is left/],
        ["break", /connection to the server was lost/],
        ["nonsense", /SyntaxError/],
        ["busy", /too many requests.*Retry-After: 3 s/],
        ["fallback", /without the drafter: .*connection refused/],
      ]) {
        await visitor.ask(word);
        await visitor.sees(said);
        const count = await visitor.tokens().count();
        assert.equal(count > 0, word !== "busy", word);
      }
      await visitor.leave();
    },
  },
  {
    name: "a lost drafter is named while the text goes on",
    run: async ({ mock, open }) => {
      const visitor = await (await open((await mock()).url)).loaded();
      await visitor.send("fallback 3000");
      await visitor.sees(/without the drafter: .*connection refused/);
      assert.equal(await visitor.page.locator(".composer .stop").count(), 1, "it had ended");
      await visitor.answered();
      await visitor.leave();
    },
  },
  {
    name: "a slow network: what is waited for is said",
    long: true,
    run: async ({ mock, open }) => {
      const visitor = await open((await mock()).url);
      const { page, context } = visitor;
      await visitor.loaded();
      const network = await context.newCDPSession(page);
      await network.send("Network.emulateNetworkConditions", {
        offline: false,
        latency: 400,
        downloadThroughput: 6000,
        uploadThroughput: 6000,
      });
      await visitor.send("hold");
      await visitor.sees(/Waiting for the first token/);
      await visitor.answered(60_000);
      assert.ok((await visitor.tokens().count()) > 20);
      await visitor.leave();
    },
  },
];
