/** Calls the server's API, all of it relative to the page, so that it works behind a path prefix. */

import type { Piece } from "./pieces.ts";
import type { Failure } from "./run.ts";
import { EventParser } from "./sse.ts";

/** A call that failed: the server's own error, or that it was not reached (`status` null). */
export class ApiError extends Error {
  readonly failure: Failure;

  constructor(failure: Failure) {
    super(failure.message);
    this.failure = failure;
  }
}

/** Returns a failure as it is shown. What is not of the API is an answer that it would not give. */
export function failureOf(error: unknown): Failure {
  if (error instanceof ApiError) return error.failure;
  return { message: String(error), param: null, status: null };
}

/** Asks for a token; `wrong` says whether one was given and refused. Null is the user's no. */
export type AskForToken = (wrong: boolean) => Promise<string | null>;

export class Api {
  // In memory only: a token that is stored could be read by whoever uses this browser next.
  #token: string | null = null;
  #asking: Promise<string | null> | null = null;
  readonly #ask: AskForToken;
  readonly #unreachable: () => string;

  /** `unreachable` says, in the user's language, that the connection was lost. */
  constructor(ask: AskForToken, unreachable: () => string) {
    this.#ask = ask;
    this.#unreachable = unreachable;
  }

  /** Returns what is at `path`. */
  async get<Answer>(path: string): Promise<Answer> {
    const response = await this.#call(path, {});
    return (await response.json()) as Answer;
  }

  /** Posts a request, and yields what comes of its stream: all pieces that one read of the network brought. */
  async *stream(
    path: string,
    body: Record<string, unknown>,
    signal: AbortSignal,
  ): AsyncGenerator<Piece[]> {
    const headers = { "content-type": "application/json" };
    const init = { method: "POST", headers, body: JSON.stringify(body), signal };
    const response = await this.#call(path, init);
    const parser = new EventParser();
    const decoder = new TextDecoder();
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    try {
      while (true) {
        const { done, value } = await reader.read().catch((error) => this.#lost(error));
        if (done) throw this.#lostError();
        const events = parser.push(decoder.decode(value, { stream: true }));
        const end = events.indexOf("[DONE]");
        const whole = end < 0 ? events : events.slice(0, end);
        if (whole.length > 0) yield whole.map((event) => JSON.parse(event) as Piece);
        if (end >= 0) return;
      }
    } finally {
      // Whoever stops reading leaves no stream behind that the server goes on to fill.
      void reader.cancel().catch(() => {});
    }
  }

  async #call(path: string, init: RequestInit): Promise<Response> {
    while (true) {
      const sent = this.#token;
      const headers = { ...init.headers, ...(sent ? { authorization: `Bearer ${sent}` } : {}) };
      const response = await fetch(path, { ...init, headers }).catch((error) => this.#lost(error));
      if (response.ok) return response;
      if (response.status !== 401 || !(await this.#newToken(sent))) throw await failed(response);
    }
  }

  /** Asks for a token once, however many calls wait for it. Returns whether there is another to try. */
  async #newToken(refused: string | null): Promise<boolean> {
    if (this.#token !== refused) return true;
    this.#asking ??= this.#ask(refused !== null).finally(() => {
      this.#asking = null;
    });
    const token = await this.#asking;
    if (token) this.#token = token;
    return token !== null;
  }

  #lost(error: unknown): never {
    const isAbort = error instanceof DOMException && error.name === "AbortError";
    throw isAbort ? error : this.#lostError();
  }

  #lostError(): ApiError {
    return new ApiError({ message: this.#unreachable(), param: null, status: null });
  }
}

/** Returns the error that an answer tells. Proxies may answer with something else than the API's JSON. */
async function failed(response: Response): Promise<ApiError> {
  const { status, statusText } = response;
  const told = await response.json().catch(() => null);
  const error = told?.error;
  const message = typeof error?.message === "string" ? error.message : `${status} ${statusText}`;
  const wait = response.headers.get("retry-after");
  const advice = wait ? ` (Retry-After: ${wait} s)` : "";
  return new ApiError({ message: message + advice, param: error?.param ?? null, status });
}
