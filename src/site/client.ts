// A client for the animal store: one file without dependencies, for Node 22.18 and newer. Save it next to your program.
//
// A request that fails, or gets no complete response within 30 seconds, is sent again, at most five times: after 1, 2,
// 4, 8 and 16 seconds, or as long as Retry-After says if that is longer (after a 429 without it, a minute). A call
// fails at once after a complete 3xx, after a complete 4xx other than 429, and if it would have to wait for more than a
// minute. Each call reads what earlier calls of the same object have written.
//
// Integers are bigints, because a number is exact only up to 2^53 − 1. toJson prints them.

export type PetStatus = "available" | "pending" | "sold";

/** An animal to add. */
export interface NewPet {
  /** At most 1,000 characters, at least one of which is not white space. */
  name: string;
  /** An int64. */
  categoryId: bigint;
  /** Defaults to "available". */
  status?: PetStatus | undefined;
}

/** An animal in the store. */
export interface Pet {
  /** An int64. A later animal has a greater one. */
  id: bigint;
  name: string;
  /** An int64. */
  categoryId: bigint;
  status: PetStatus;
}

type RequestError = "invalid_request" | "body_too_large" | "unsupported_media_type" | "idempotency_key_used";
type AccessError = "api_key_missing" | "api_key_invalid" | "plain_http" | "rate_limited";
type AddressError = "id_not_found" | "path_not_found" | "method_not_allowed" | "operation_removed";
type ServiceError = "internal_error" | "outcome_unknown" | "store_unavailable" | "closed";
/** The service's names of errors. More can be added. */
export type ErrorCode = RequestError | AccessError | AddressError | ServiceError;

/** Why a call failed for good. The message is the service's, or says what came instead of its response. */
export class AnimalStoreError extends Error {
  override readonly name = "AnimalStoreError";
  /** The HTTP status. Undefined if there was no response. */
  readonly status: number | undefined;
  /** The service's name of the error. Undefined if something else has responded. */
  readonly code: ErrorCode | (string & {}) | undefined;
  /** The response header cf-ray, by which the operator finds the request. */
  readonly ray: string | undefined;
  /** The response header Retry-After, in seconds. */
  readonly retryAfter: number | undefined;
  /** Of a create: another call with this key and the same animal does not add a second one. */
  readonly idempotencyKey: string | undefined;
  /** Of a create: whether this call may have added the animal. False only if the service has rejected every request. */
  readonly mayBeAdded: boolean | undefined;

  constructor(message: string, { cause, ...facts }: Partial<AnimalStoreError>) {
    super(message, { cause });
    Object.assign(this, facts);
  }
}

export interface CallOptions {
  /** Ends the call, which then throws the reason of the signal. Even so, a create may have added its animal. */
  signal?: AbortSignal | undefined;
  /** Milliseconds after which the call fails, or before a wait that would pass them. Of a list, for each page. */
  timeout?: number | undefined;
}

/** A request, and whether a value is its response. Only a create has a body. */
interface Call<T> {
  path: string;
  body?: string;
  idempotencyKey?: string;
  isExpected: (value: unknown) => value is T;
}

const BASE_URL = /^(https:\/\/[^/?#@]+|http:\/\/(localhost|127(\.\d+){3}|\[::1\])(:\d+)?)(\/[^?#@]*)?\/v1\/*$/;
const PAGE = 100; // animals
const TIMEOUT = 30_000; // milliseconds
const WAITS = [1, 2, 4, 8, 16]; // seconds
const MAX_WAIT = 60; // seconds

export class AnimalStore {
  readonly #baseUrl: string;
  readonly #apiKey: string;
  readonly #fetch: typeof globalThis.fetch;
  /** The greatest bookmark that was compared since the last failure. */
  #bookmark = "";
  // Numbers of requests, which say what was sent before what.
  #sent = 0; // the last one
  #failed = 0; // the last one that was sent before a failure
  #missed = 0; // … or before the success of a create whose bookmark was not compared
  #compared = 0; // the last one whose bookmark was compared

  /** `baseUrl` ends in /v1. `fetch` replaces the global one, for tests and proxies. */
  constructor(options: { baseUrl: string; apiKey: string; fetch?: typeof globalThis.fetch | undefined }) {
    const { baseUrl, apiKey, fetch = globalThis.fetch } = options;
    if (!BASE_URL.test(baseUrl) || !URL.canParse(baseUrl))
      throw new TypeError("baseUrl must be an https URL, or an http URL of localhost, that ends in /v1.");
    if (!apiKey) throw new TypeError("apiKey is empty.");
    if (!/^[\w.~+/-]+=*$/.test(apiKey)) throw new TypeError("apiKey must be an API key.");
    this.#baseUrl = baseUrl.replace(/\/+$/, "");
    this.#apiKey = apiKey;
    this.#fetch = (input, init) => fetch(input, init);
  }

  /**
   * Adds one animal, however often it has to be sent. If your program may end before it has the response, keep an
   * `idempotencyKey` of your own (1 to 255 printable ASCII characters, no double quotes), and call this again with it.
   */
  async createPet(pet: NewPet, options: CallOptions & { idempotencyKey?: string | undefined } = {}): Promise<Pet> {
    const { idempotencyKey = crypto.randomUUID() } = options;
    const body = toJson({ ...pet, categoryId: toInt64("categoryId", pet.categoryId) });
    return this.#call({ path: "/pets", body, idempotencyKey, isExpected: isPet }, options);
  }

  /** All animals, in ascending order of id: those with this status, and with an id greater than `after`. */
  async *listPets(
    options: CallOptions & { status?: PetStatus | undefined; after?: bigint | undefined } = {},
  ): AsyncGenerator<Pet, void> {
    const { signal, status, after = 0n } = options;
    for (let last = toInt64("after", after); ; ) {
      const query = { limit: `${PAGE}`, after: `${last}`, ...(status !== undefined && { status }) };
      const isExpected = (value: unknown) => isPage(value, last);
      const page = await this.#call({ path: `/pets?${new URLSearchParams(query)}`, isExpected }, options);
      for (const pet of page) {
        signal?.throwIfAborted();
        yield pet;
        last = pet.id;
      }
      if (page.length < PAGE) return;
    }
  }

  /** The animal with this id, or undefined if there is none. */
  async getPet(id: bigint, options: CallOptions = {}): Promise<Pet | undefined> {
    const wanted = toInt64("id", id);
    const isExpected = (value: unknown) => isPage(value, wanted - 1n, wanted);
    const [pet] = await this.#call({ path: `/pets?id=${wanted}`, isExpected }, options);
    return pet;
  }

  /** Sends a request until it succeeds or fails for good. */
  async #call<T>(call: Call<T>, { signal, timeout }: CallOptions): Promise<T> {
    if (timeout !== undefined && !(Number.isSafeInteger(timeout) && timeout > 0))
      throw new TypeError("timeout must be a positive integer.");
    const end = performance.now() + (timeout ?? Number.POSITIVE_INFINITY);
    let mayBeAdded = false;
    let last: AnimalStoreError | undefined;
    for (let tries = 0; ; tries++) {
      const left = end - performance.now();
      const result = await this.#send(call, Math.min(left, TIMEOUT), signal);
      if (!(result instanceof AnimalStoreError)) return result;

      // If there was no time for another response, the facts of the last one say more.
      const isCutShort = left < TIMEOUT && Object(result.cause).name === "TimeoutError";
      last = isCutShort && last ? Object.assign(last, { message: result.message }) : result;
      mayBeAdded ||= !isRejection(result);
      if (call.body !== undefined) Object.assign(last, { mayBeAdded });
      const wait = Math.max(WAITS[tries] ?? 0, last.retryAfter ?? (last.status === 429 ? MAX_WAIT : 0));
      const isTooLong = wait > MAX_WAIT || performance.now() + wait * 1000 >= end;
      if (isFinal(last) || tries === WAITS.length || isTooLong) throw last;
      await sleep(wait * 1000, signal);
      if (performance.now() >= end) throw last;
    }
  }

  /** Sends a request once. Returns what it got or, if that is not what it should get, why. */
  async #send<T>(call: Call<T>, timeout: number, signal?: AbortSignal): Promise<T | AnimalStoreError> {
    signal?.throwIfAborted();
    const { path, body, idempotencyKey, isExpected } = call;
    const isCreate = body !== undefined;
    const bookmark = this.#compared > this.#missed ? this.#bookmark : "latest";
    const headers = new Headers({ Authorization: `Bearer ${this.#apiKey}`, "x-d1-bookmark": bookmark });
    if (isCreate) headers.set("Content-Type", "application/json");
    if (idempotencyKey !== undefined) headers.set("Idempotency-Key", `"${idempotencyKey}"`);
    const number = ++this.#sent;
    let response: Response | undefined;
    let [text, value, cause]: [string, unknown, unknown] = ["", undefined, undefined];
    try {
      const signals = [AbortSignal.timeout(Math.ceil(timeout)), ...(signal ? [signal] : [])];
      const init = { headers, redirect: "manual", signal: AbortSignal.any(signals) } as const;
      response = await this.#fetch(this.#baseUrl + path, isCreate ? { ...init, method: "POST", body } : init);
      text = await response.text();
      // What begins like JSON, and is not, was cut off.
      if (/^\s*[[{]/.test(text)) value = parse(text);
    } catch (failure) {
      cause = failure;
    }
    const { status, headers: received } = response ?? {};
    if (status === (isCreate ? 201 : 200) && isExpected(value)) {
      // Bookmarks sort by age. One of a request from before a failure can be that of a database that was replaced.
      const newest = received?.get("x-d1-bookmark") ?? "";
      if (newest !== "" && number > this.#failed) {
        if (newest > this.#bookmark) this.#bookmark = newest;
        this.#compared = number;
      } else if (isCreate) this.#missed = this.#sent;
      return value;
    }
    this.#failed = this.#missed = this.#sent;
    this.#bookmark = "";
    if (cause !== undefined) signal?.throwIfAborted();

    // A proxy may show what was sent.
    const hide = (shown: string) => shown.replaceAll(this.#apiKey, "(API key)");
    const { code, message } = Object(value) as Record<string, unknown>;
    const isOurs = typeof code === "string" && typeof message === "string";
    const other = cause === undefined ? `Status ${status}: ${text}` : `No complete response: ${reasonOf(cause)}`;
    const ray = received?.get("cf-ray") ?? undefined;
    const [seconds] = /^\d+$/.exec(received?.get("Retry-After") ?? "") ?? [];
    return new AnimalStoreError(hide(isOurs ? message : other).slice(0, 500), {
      status,
      code: isOurs ? hide(code) : undefined,
      ray: ray && hide(ray),
      retryAfter: seconds === undefined ? undefined : Number(seconds),
      idempotencyKey,
      cause,
    });
  }
}

/** Whether the service says that it did nothing. */
const isRejection = ({ status = 0, code }: AnimalStoreError): boolean =>
  code !== undefined && (code === "closed" || (status >= 400 && status < 500));

/** Whether the same request would fail again. In browsers, a redirect has the status 0. */
const isFinal = ({ status = 0, cause }: AnimalStoreError): boolean =>
  cause === undefined && status < 500 && status !== 429 && !(status >= 200 && status < 300);

// TypeScript does not declare these members yet.
const json = JSON as unknown as {
  parse(text: string, reviver: (name: string, value: unknown, context: { source: string }) => unknown): unknown;
  rawJSON(text: string): unknown;
};

/** JSON.stringify, which rejects bigints, with bigints as integers. */
export const toJson = (value: unknown): string =>
  JSON.stringify(value, (_, member) => (typeof member === "bigint" ? json.rawJSON(`${member}`) : member));

/** Parses JSON, with integers as bigints. The error does not quote the text, which may be what was sent. */
function parse(text: string): unknown {
  try {
    return json.parse(text, (_, value, { source }) => (/^-?\d+$/.test(source) ? BigInt(source) : value));
  } catch {
    throw new Error("malformed JSON");
  }
}

/** Programs without types may have a number. */
function toInt64(name: string, value: bigint | number): bigint {
  const integer = typeof value === "bigint" || Number.isSafeInteger(value) ? BigInt(value) : undefined;
  if (integer !== undefined && integer === BigInt.asIntN(64, integer)) return integer;
  throw new TypeError(`${name} must be a bigint in the range of int64.`);
}

function isPet(value: unknown): value is Pet {
  const { id, name, categoryId, status } = Object(value) as Record<keyof Pet, unknown>;
  const areIntegers = typeof id === "bigint" && typeof categoryId === "bigint";
  return areIntegers && typeof name === "string" && typeof status === "string";
}

/** Whether these are animals whose ids increase, are greater than `after`, and are at most `last`. */
const isPage = (value: unknown, after: bigint, last = 2n ** 63n): value is Pet[] =>
  Array.isArray(value) &&
  value.every((pet, i) => isPet(pet) && pet.id > (i === 0 ? after : value[i - 1].id) && pet.id <= last);

/** Why fetch has failed: the cause of its error, such as ECONNREFUSED. */
function reasonOf(error: unknown): string {
  const { message, cause } = Object(error) as { message?: string; cause?: { message?: string; code?: string } };
  return String(cause?.message || cause?.code || message || error);
}

/** Waits, or until the signal aborts. */
function sleep(milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((wake) => {
    const end = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", end);
      wake();
    };
    const timer = setTimeout(end, milliseconds);
    signal?.addEventListener("abort", end);
    if (signal?.aborted) end();
  });
}
