// A visitor of the page: what they do, and what they see.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** Chooses rounds of four draft tokens: `auto` rests where the machine makes drafts not pay. */
export async function draftFour(page) {
  await page.locator(".method details > summary").first().click();
  await page.selectOption("#pane-0-draft_len", "K");
  await page.locator("#pane-0-draft_len + input").fill("4");
  await page.selectOption("#pane-0-schedule", "rounds");
}

export class Visitor {
  constructor(context, page, url) {
    Object.assign(this, { context, page, url, complaints: [] });
    page.on("console", (message) => {
      // Of a request that is refused the browser writes a line by itself, which no page can help.
      const isRefusal = /the server responded with a status of 4\d\d/.test(message.text());
      const isLost = /net::ERR_(INCOMPLETE_CHUNKED_ENCODING|INTERNET_DISCONNECTED|CONNECTION)/.test(
        message.text(),
      );
      if (message.type() === "error" && !isRefusal && !isLost) this.complaints.push(message.text());
    });
    page.on("pageerror", (error) => this.complaints.push(String(error)));
    page.on("request", (request) => {
      const asked = request.url();
      if (!asked.startsWith(url) && !/^(data|blob):/.test(asked))
        this.complaints.push(`asked ${asked}`);
    });
  }

  /** Opens the page in a window of its own. */
  static async open(browser, url, options = {}) {
    const { width = 1280, height = 900, ...others } = options;
    const context = await browser.newContext({
      viewport: { width, height },
      locale: "en-US",
      ...others,
    });
    const visitor = new Visitor(context, await context.newPage(), url);
    await visitor.page.goto(url);
    return visitor;
  }

  /** Waits until the page knows what is served. */
  async loaded() {
    await this.page.locator("#pane-0-method").waitFor({ state: "attached" });
    return this;
  }

  /** Leaves, after which nothing may have gone wrong unseen. */
  async leave() {
    await this.context.close();
    assert.deepEqual(this.complaints, [], "console errors or requests elsewhere");
  }

  async send(text) {
    await this.page.fill("#message", text);
    await this.page.click(".composer [type=submit]");
  }

  /** Waits until what was just done is seen: views are told of changes once a frame. */
  async frame() {
    await this.page.evaluate(
      () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))),
    );
  }

  /** Waits until nothing is under way. */
  async answered(timeout = 30_000) {
    await this.frame();
    await this.page.locator(".composer [type=submit]:not(.stop)").waitFor({ timeout });
    await this.page.locator(".turn:last-child .actions").last().waitFor({ timeout });
  }

  async ask(text) {
    await this.send(text);
    await this.answered();
  }

  /** Whether an element with this text can be seen. */
  async sees(text, timeout = 10_000) {
    await this.page.getByText(text).filter({ visible: true }).first().waitFor({ timeout });
  }

  tokens(of = ".turn:last-child") {
    return this.page.locator(`${of} .output .token`);
  }

  async text(selector) {
    return (await this.page.locator(selector).first().textContent()) ?? "";
  }

  /** Returns what axe finds wrong, and fails if that is anything. */
  async accessible() {
    // The policy of the page forbids scripts of others, so this one comes by the debugger.
    await this.page.evaluate(AXE);
    const { violations } = await this.page.evaluate(() => window.axe.run());
    const told = violations.map(
      ({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 120))}`,
    );
    assert.deepEqual(told, [], "axe");
  }

  /** Fails if the page must be scrolled sideways. */
  async fits() {
    const wide = await this.page.evaluate(() => {
      const { scrollWidth, clientWidth } = document.documentElement;
      return scrollWidth - clientWidth;
    });
    assert.equal(wide, 0, `the page is ${wide} px wider than its window`);
  }
}
