// Outputs that try to do harm: nothing of them may run, load, or break the page.
import assert from "node:assert/strict";

/** Shows an output as tokens and as Markdown, and has `look` see each. */
async function bothWays({ mock, open }, word, look) {
  const visitor = await (await open((await mock()).url)).loaded();
  await visitor.ask(word);
  await look(visitor, "tokens");
  await visitor.page.uncheck("#coloured");
  await visitor.page.locator(".output .markdown").waitFor();
  await look(visitor, "Markdown");
  assert.equal(
    await visitor.page.evaluate(() => window.harmed),
    undefined,
    "a script of the model ran",
  );
  await visitor.leave();
}

export const hostileSteps = [
  {
    name: "HTML of the model is shown, not run; links are plain; images are not loaded",
    run: (world) =>
      bothWays(world, "html", async ({ page }, as) => {
        const output = page.locator(".turn:last-child .output");
        assert.match(await output.textContent(), /<script>window\.harmed = 1<\/script>/, as);
        assert.equal(
          await output.locator("img, script, iframe, style, form, svg, [onerror]").count(),
          0,
          as,
        );
        const links = await output
          .locator("a")
          .evaluateAll((all) => all.map((link) => [link.getAttribute("href"), link.rel]));
        const rel = "noopener noreferrer nofollow";
        if (as === "tokens") return assert.deepEqual(links, []);
        assert.ok(links.some(([href]) => href === "https://elsewhere.invalid/a"));
        for (const [href, is] of links) {
          if (href !== null) assert.match(href, /^https:/);
          assert.equal(is, rel);
        }
      }),
  },
  {
    name: "a line of a megabyte leaves the page usable",
    run: async (world) => {
      const from = performance.now();
      await bothWays(world, "line", async (visitor, as) => {
        await visitor.fits();
        const field = visitor.page.locator("#message");
        await field.fill("still here");
        assert.equal(await field.inputValue(), "still here", as);
      });
      return `${Math.round(performance.now() - from)} ms for both ways`;
    },
  },
  {
    name: "marks of direction can be seen in tokens, and turn nothing outside",
    run: (world) =>
      bothWays(world, "bidi", async ({ page }, as) => {
        const text = await page.locator(".turn:last-child .output").textContent();
        if (as === "tokens") assert.match(text, /⟨RLO⟩.*⟨RLI⟩mark⟨PDI⟩.*⟨RLM⟩/);
        const isolated = await page
          .locator(".output :is(.line, .block)")
          .first()
          .evaluate((line) => getComputedStyle(line).unicodeBidi);
        assert.equal(isolated, "isolate", as);
      }),
  },
  {
    name: "terminal escapes are pictures",
    run: (world) =>
      bothWays(world, "escape", async ({ page }, as) => {
        const text = await page.locator(".turn:last-child .output").textContent();
        assert.match(text, /␛\[31mred␛\[0m bell␇ null␀ c1⟨9b⟩ back␍space/, as);
      }),
  },
  {
    name: "unclosed and deeply nested Markdown is shown",
    run: async (world) => {
      await bothWays(world, "unclosed", async ({ page }, as) => {
        assert.match(
          await page.locator(".turn:last-child .output").textContent(),
          /let a = 1;/,
          as,
        );
      });
      await bothWays(world, "nested", async ({ page }, as) => {
        assert.match(await page.locator(".turn:last-child .output").textContent(), /> > >/, as);
      });
    },
  },
];
