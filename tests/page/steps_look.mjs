// How it looks, and how it is used without a mouse or without eyes.
import assert from "node:assert/strict";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { draftFour } from "./visitor.mjs";

/** Opens every part of the page that can be seen at once. */
async function fill(visitor) {
  const { page } = visitor;
  const toggle = page.locator(".toggle-settings:visible");
  const isNarrow = (await toggle.count()) > 0;
  if (isNarrow) await toggle.click();
  await page.check("#logprobs");
  await page.selectOption("#pane-0-method", "spec-cascade");
  await page.locator(".method details > summary").first().click();
  if (isNarrow) {
    await visitor.fits();
    await visitor.accessible();
    await toggle.click();
  }
  await visitor.ask("one");
}

const LOOKS = [
  { width: 320, height: 640, colorScheme: "light" },
  { width: 320, height: 640, colorScheme: "dark", long: true },
  { width: 768, height: 900, colorScheme: "light", long: true },
  { width: 1600, height: 1000, colorScheme: "light", long: true },
  { width: 1600, height: 1000, colorScheme: "dark" },
];

const looks = LOOKS.map(({ long, ...look }) => ({
  name: `axe finds nothing and nothing is cut off, ${look.width} px, ${look.colorScheme}`,
  long,
  run: async ({ mock, open }) => {
    const visitor = await (await open((await mock()).url, look)).loaded();
    await visitor.accessible();
    await fill(visitor);
    await visitor.fits();
    await visitor.accessible();
    await visitor.tokens().nth(4).click();
    await visitor.accessible();
    await visitor.leave();
  },
}));

export const lookSteps = [
  ...looks,
  {
    name: "axe finds nothing side by side, in an error, while editing, and in the dialog",
    long: true,
    run: async ({ mock, otherMock, open }) => {
      const visitor = await (await open((await mock()).url, { width: 1600 })).loaded();
      const { page } = visitor;
      await page.check("#sideBySide");
      await page.selectOption("#pane-1-method", "lossy");
      await visitor.ask("one");
      await visitor.accessible();
      await visitor.ask("refuse");
      await visitor.accessible();
      await page.getByRole("button", { name: "Edit" }).first().click();
      await visitor.accessible();
      await page.uncheck("#coloured");
      await visitor.accessible();
      await visitor.leave();
      const asked = await open((await otherMock({ token: "a" })).url);
      await asked.page.locator("dialog[open]").waitFor();
      await asked.accessible();
      await asked.leave();
    },
  },
  {
    name: "everything by keyboard: write, send, walk through tokens, play, settings",
    run: async ({ mock, open }) => {
      const visitor = await (await open((await mock()).url)).loaded();
      const { page } = visitor;
      const { keyboard } = page;
      const tabTo = async (selector) => {
        for (let tabs = 0; tabs < 60; tabs += 1) {
          if (
            await page
              .locator(selector)
              .first()
              .evaluate((each) => each === document.activeElement)
          )
            return tabs;
          await keyboard.press("Tab");
        }
        throw new Error(`${selector} is not reached by Tab`);
      };
      await tabTo("#message");
      await keyboard.type("one");
      await keyboard.press("Enter");
      await visitor.answered();
      await page.locator("h1").click();
      await tabTo(".output .token");
      const focused = () =>
        page.evaluate(
          () =>
            [...document.querySelectorAll(".token")].filter((each) => each.tabIndex === 0).length,
        );
      for (const key of ["ArrowRight", "ArrowRight", "ArrowDown", "ArrowLeft"])
        await keyboard.press(key);
      assert.equal(await focused(), 1, "one token is a tab stop");
      await visitor.sees(/^Position$/);
      const described = await page.evaluate(() =>
        document.activeElement.getAttribute("aria-describedby"),
      );
      assert.equal(described, "card");
      await keyboard.press("Escape");
      assert.equal(await page.locator("#card").isVisible(), false);
      await keyboard.press("End");
      await keyboard.press("Tab");
      const leaves = await page.evaluate(() => document.activeElement.closest(".tokens"));
      assert.equal(leaves, null, "Tab leaves the tokens");
      await tabTo(".player input");
      await keyboard.press("Home");
      await keyboard.press("ArrowRight");
      await page.waitForFunction(() => document.querySelectorAll(".token.later").length > 0);
      await tabTo("#coloured");
      await keyboard.press("Space");
      await page.locator(".output .markdown").waitFor();
      await tabTo("#pane-0-method");
      await keyboard.press("ArrowDown");
      await page.locator("#pane-0-alpha").waitFor();
      assert.equal(
        await page.evaluate(() => document.activeElement.id),
        "pane-0-method",
        "the focus stays",
      );
      await visitor.leave();
    },
  },
  {
    name: "the tokens of each origin differ by more than colour",
    run: async ({ mock, open }) => {
      const visitor = await (await open((await mock()).url)).loaded();
      const styles = await visitor.page
        .locator(".legend .token")
        .evaluateAll((all) => all.map((each) => getComputedStyle(each).textDecorationStyle));
      assert.deepEqual(new Set(styles).size, 5, styles.join());
      await visitor.leave();
    },
  },
  {
    name: "a tap on a token shows its card, another place hides it",
    run: async ({ mock, open }) => {
      const look = { width: 390, height: 740, hasTouch: true, isMobile: true };
      const visitor = await (await open((await mock()).url, look)).loaded();
      const { page } = visitor;
      await visitor.ask("one");
      await visitor.tokens().nth(3).tap();
      await visitor.sees(/^Position$/);
      await page.locator(".numbers").last().tap();
      await page.locator("#card").waitFor({ state: "hidden" });
      await visitor.leave();
    },
  },
  {
    name: "German where the browser prefers it",
    run: async ({ mock, open }) => {
      const visitor = await (await open((await mock()).url, { locale: "de-DE" })).loaded();
      await visitor.sees(/^Einstellungen|Anzeige$/);
      assert.equal(await visitor.page.getAttribute("html", "lang"), "de");
      await visitor.ask("eins");
      await visitor.sees(/Tokens je Sekunde/);
      await visitor.leave();
    },
  },
  {
    name: "a picture of the page",
    run: async ({ all, open, screenshots }) => {
      if (!screenshots) return "none asked for: --screenshots FOLDER";
      await mkdir(screenshots, { recursive: true });
      const visitor = await (await open((await all()).url, { width: 1280, height: 900 })).loaded();
      const { page } = visitor;
      await page.check("#mode-complete", { force: true });
      await draftFour(page);
      await page.check("#logprobs");
      await page.fill("#max_tokens", "120");
      await page.fill("#seed", "8");
      await visitor.ask("Once upon a time");
      await page.locator("#settings").evaluate((settings) => settings.scrollTo(0, 0));
      await visitor.tokens().nth(9).hover();
      const path = join(screenshots, "page.png");
      await page.screenshot({ path });
      await visitor.leave();
      return path;
    },
  },
];
