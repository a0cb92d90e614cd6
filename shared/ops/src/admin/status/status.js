// Shows status.json, and asks for it again every two seconds while somebody looks.

const EVERY_MS = 2000;

const process = document.getElementById("process");
const parts = document.getElementById("parts");
const pause = document.getElementById("pause");

/** Returns an element with a class and what is in it; texts are never read as HTML. */
function element(name, className, ...children) {
  const made = document.createElement(name);
  if (className) made.className = className;
  made.append(...children);
  return made;
}

/** Returns how a value is written. */
function written(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "number" && !Number.isInteger(value)) return value.toFixed(2);
  return String(value);
}

/** Returns the class of a cell: figures stand to the right, and states have a colour beside their word. */
function classOf(key, value) {
  if (typeof value === "number") return "number";
  if (key !== "state") return "";
  return value === "alive" ? "good" : "bad";
}

/** Returns a table of rows that are alike, a column for each of their keys. */
function table(title, rows) {
  const keys = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const heads = keys.map((key) => {
    const isNumber = rows.every((row) => typeof row[key] === "number");
    const head = element("th", isNumber ? "number" : "", key.replaceAll("_", " "));
    head.scope = "col";
    return head;
  });
  const cells = (row) => keys.map((key) => element("td", classOf(key, row[key]), written(row[key])));
  const body = rows.map((row) => element("tr", "", ...cells(row)));
  const made = element("table", "", element("caption", "", title), element("thead", "", element("tr", "", ...heads)));
  made.append(element("tbody", "", ...body));
  return element("div", "scroll", made);
}

/** Returns what a part says: its lists as tables, and all else as one row. */
function section(part) {
  const lists = Object.entries(part).filter(([, value]) => Array.isArray(value));
  const single = Object.entries(part).filter(([key, value]) => key !== "part" && !Array.isArray(value));
  const shown = element("section", "", element("h2", "", part.part));
  if (single.length > 0) shown.append(table("now", [Object.fromEntries(single)]));
  for (const [name, rows] of lists) {
    const title = name.replaceAll("_", " ");
    shown.append(rows.length > 0 ? table(title, rows) : element("p", "", `${title}: none`));
  }
  return shown;
}

function show(told) {
  const services = Object.entries(told.services).map(([name, condition]) => `${name.split(".").pop()} is ${condition}`);
  const state = element("strong", told.ready ? "good" : "bad", told.ready ? "ready" : "not ready");
  process.replaceChildren(state, `, version ${told.version}: ${services.join(", ")}`);
  const warnings = told.warnings.map((warning) => element("p", "bad", warning));
  // Peers tell of themselves; whoever knows them all comes first.
  const inOrder = told.parts.toSorted((one, other) => one.part.localeCompare(other.part));
  parts.replaceChildren(...warnings, ...inOrder.map(section));
}

async function refresh() {
  const isPaused = pause.getAttribute("aria-pressed") === "true";
  if (!document.hidden && !isPaused) {
    try {
      const answer = await fetch("status.json", { cache: "no-store" });
      if (!answer.ok) throw new Error(`HTTP ${answer.status}`);
      show(await answer.json());
    } catch (error) {
      const lost = element("strong", "bad", "no answer");
      process.replaceChildren(lost, `: ${error.message}; what is below is of before`);
    }
  }
  setTimeout(refresh, EVERY_MS);
}

pause.addEventListener("click", () => {
  const isPaused = pause.getAttribute("aria-pressed") === "true";
  pause.setAttribute("aria-pressed", String(!isPaused));
});

refresh();
