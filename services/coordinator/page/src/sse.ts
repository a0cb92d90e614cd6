/**
 * Reads server-sent events as they come, in whatever pieces the network makes of them: lines end with LF,
 * CR or both, an event ends with an empty line, and a line that begins with a colon is a keep-alive.
 */
export class EventParser {
  #rest = "";
  #data: string[] = [];
  #afterCarriageReturn = false;

  /** Returns the data of the events that are whole now. */
  push(piece: string): string[] {
    if (this.#afterCarriageReturn && piece.startsWith("\n")) piece = piece.slice(1);
    if (piece !== "") this.#afterCarriageReturn = piece.endsWith("\r");
    const lines = (this.#rest + piece).split(/\r\n|\n|\r/);
    this.#rest = lines.pop() ?? "";
    const events: string[] = [];
    for (const line of lines) {
      if (line === "") {
        if (this.#data.length > 0) events.push(this.#data.join("\n"));
        this.#data = [];
      } else if (line.startsWith("data:")) {
        this.#data.push(line.slice(line[5] === " " ? 6 : 5));
      }
    }
    return events;
  }
}
