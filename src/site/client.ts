// A client for the animal store: one file without dependencies, for Node 22.18 and newer. Save it next to your program.
//
// A request is sent again, at most five times, if there is no complete response within 30 seconds, or a 429 or a 5xx:
// after 1, 2, 4, 8 and 16 seconds, or as long as Retry-After says if that is longer (after a 429 without it, a minute).
// If Retry-After is more than a minute, the call fails at once. Each call reads what was written before it.
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

/** Why a call failed for good. The message is the service's, or says what came instead of its response. */
export class AnimalStoreError extends Error {
  override readonly name = "AnimalStoreError";
  /** The HTTP status. Undefined if there was no response. */
  readonly status: number | undefined;
  /** The service's name of the error, such as "bad_request". Undefined if something else has responded. */
  readonly code: string | undefined;
  /** The response header cf-ray, by which the operator finds the request. */
  readonly ray: string | undefined;
  /** The response header Retry-After, in seconds. */
  readonly retryAfter: number | undefined;
  /** Of a create: another call with this key and the same animal does not add a second one. */
  readonly idempotencyKey: string | undefined;

  constructor(message: string, { cause, ...facts }: Partial<AnimalStoreError>) {
    super(message, { cause });
    Object.assign(this, facts);
  }
}

export interface CallOptions {
  /** Ends the call, which then throws the reason of the signal. */
  signal?: AbortSignal | undefined;
}

const MIN_INT64 = -(2n ** 63n);
const PAGE = 100; // animals
const TIMEOUT = 30_000; // milliseconds
const WAITS = [1, 2, 4, 8, 16]; // seconds
const MAX_WAIT = 60; // seconds

export class AnimalStore {
  readonly #baseUrl: string;
  readonly #apiKey: string;
  readonly #fetch: typeof globalThis.fetch;
  #bookmark = "latest";
  /** How often a request was sent or has ended. */
  #events = 0;

  /** `baseUrl` ends in /v1. `fetch` replaces the global one, for tests and proxies. */
  constructor(options: { baseUrl: string; apiKey: string; fetch?: typeof globalThis.fetch | undefined }) {
    const { baseUrl, apiKey, fetch = globalThis.fetch } = options;
    if (!URL.canParse(baseUrl) || !/^https?:\/\/[^?#@]+\/v1$/.test(baseUrl))
      throw new TypeError("baseUrl must be a URL that ends in /v1.");
    if (!/^[\w.~+/-]+=*$/.test(apiKey ?? "")) throw new TypeError("apiKey must be an API key.");
    this.#baseUrl = baseUrl;
    this.#apiKey = apiKey;
    this.#fetch = (input, init) => fetch(input, init);
  }

  /**
   * Adds one animal, however often it has to be sent. If your program may end before it has the response, keep an
   * `idempotencyKey` of your own (1 to 255 printable ASCII characters, no double quotes), and call this again with it.
   */
  async createPet(pet: NewPet, options: CallOptions & { idempotencyKey?: string | undefined } = {}): Promise<Pet> {
    const { signal, idempotencyKey = crypto.randomUUID() } = options;
    const body = toJson({ ...pet, categoryId: toBigInt("categoryId", pet.categoryId) });
    return this.#call("/pets", isPet, signal, { body, idempotencyKey });
  }

  /** All animals, in ascending order of id: those with this status, and with an id greater than `after`. */
  async *listPets(
    options: CallOptions & { status?: PetStatus | undefined; after?: bigint | undefined } = {},
  ): AsyncGenerator<Pet, void> {
    const { signal, status, after = MIN_INT64 - 1n } = options;
    let last = toBigInt("after", after);
    let page: Pet[];
    do {
      page = await this.#page(last, { limit: `${PAGE}`, ...(status !== undefined && { status }) }, signal);
      for (const pet of page) {
        signal?.throwIfAborted();
        yield pet;
        last = pet.id;
      }
    } while (page.length >= PAGE);
  }

  /** The animal with this id, or undefined if there is none. */
  async getPet(id: bigint, { signal }: CallOptions = {}): Promise<Pet | undefined> {
    const wanted = toBigInt("id", id);
    const [pet] = await this.#page(wanted - 1n, { limit: "1" }, signal);
    return pet?.id === wanted ? pet : undefined;
  }

  #page(after: bigint, query: Record<string, string>, signal: AbortSignal | undefined): Promise<Pet[]> {
    const search = new URLSearchParams(after < MIN_INT64 ? query : { ...query, after: `${after}` });
    return this.#call(`/pets?${search}`, (value) => isPage(value, after), signal);
  }

  /** A GET, or a POST of a `body`: sent until it succeeds or fails for good. */
  async #call<T>(
    path: string,
    isExpected: (value: unknown) => value is T,
    signal: AbortSignal | undefined,
    { body, idempotencyKey }: { body?: string; idempotencyKey?: string } = {},
  ): Promise<T> {
    const headers = new Headers({ Authorization: `Bearer ${this.#apiKey}` });
    if (body !== undefined) headers.set("Content-Type", "application/json");
    if (idempotencyKey !== undefined) headers.set("Idempotency-Key", `"${idempotencyKey}"`);
    for (let tries = 0; ; tries++) {
      const { status, received, text, cause } = await this.#send(path, headers, body, signal);
      const value = parse(text);
      const isSuccess = status === (body === undefined ? 200 : 201);
      if (isSuccess && cause === undefined && isExpected(value)) return value;

      const { code, message } = Object(value) as { code?: unknown; message?: unknown };
      const isOurs = typeof code === "string" && typeof message === "string";
      const other = cause === undefined ? `Status ${status}: ${text}` : `No complete response: ${reasonOf(cause)}`;
      const [seconds] = /^\d+$/.exec(received?.get("Retry-After") ?? "") ?? [];
      const retryAfter = seconds === undefined ? undefined : Number(seconds);
      // A proxy may show what was sent.
      const shown = (isOurs ? message : other).replaceAll(this.#apiKey, "(API key)");
      const ray = received?.get("cf-ray") ?? undefined;
      const facts = { status, code: isOurs ? code : undefined, ray, retryAfter, idempotencyKey, cause };

      // What begins like JSON, and is not, was cut off.
      const isIncomplete = isSuccess && (cause !== undefined || (value === undefined && /^([[{]|$)/.test(text)));
      const isTemporary = isIncomplete || status === undefined || status === 429 || status >= 500;
      const wait = Math.max(WAITS[tries] ?? 0, retryAfter ?? (status === 429 ? MAX_WAIT : 0));
      if (!isTemporary || tries === WAITS.length || wait > MAX_WAIT)
        throw new AnimalStoreError(isOurs ? shown : shown.slice(0, 200), facts);
      await sleep(wait * 1000, signal);
    }
  }

  /** Sends a request once. `cause`: why there is no response, or not all of it. */
  async #send(path: string, headers: Headers, body: string | undefined, signal: AbortSignal | undefined) {
    signal?.throwIfAborted();
    headers.set("x-d1-bookmark", this.#bookmark);
    const started = ++this.#events;
    let response: Response | undefined;
    let [text, cause]: [string, unknown] = ["", undefined];
    try {
      const signals = [AbortSignal.timeout(TIMEOUT), ...(signal ? [signal] : [])];
      const init = { headers, redirect: "manual", signal: AbortSignal.any(signals) } as const;
      response = await this.#fetch(this.#baseUrl + path, body === undefined ? init : { ...init, method: "POST", body });
      text = await response.text();
    } catch (failure) {
      cause = failure;
    }
    // The bookmark of a request that overlapped with others may be older than what they have written.
    const isAlone = ++this.#events === started + 1;
    const bookmark = cause === undefined && response?.ok && response.headers.get("x-d1-bookmark");
    this.#bookmark = (isAlone && bookmark) || "latest";
    if (cause !== undefined) signal?.throwIfAborted();
    return { status: response?.status, received: response?.headers, text, cause };
  }
}

// TypeScript does not declare these members yet.
const json = JSON as unknown as {
  parse(text: string, reviver: (name: string, value: unknown, context: { source: string }) => unknown): unknown;
  rawJSON(text: string): unknown;
};

/** JSON.stringify, which rejects bigints, with bigints as integers. */
export const toJson = (value: unknown): string =>
  JSON.stringify(value, (_, member) => (typeof member === "bigint" ? json.rawJSON(`${member}`) : member));

/** Parses JSON, with integers as bigints. Undefined if it is not JSON. */
function parse(text: string): unknown {
  try {
    return json.parse(text, (_, value, { source }) => (/^-?\d+$/.test(source) ? BigInt(source) : value));
  } catch {
    return undefined;
  }
}

/** Programs without types may have a number. */
function toBigInt(name: string, value: bigint | number): bigint {
  if (typeof value === "bigint" || Number.isSafeInteger(value)) return BigInt(value);
  throw new TypeError(`${name} must be a bigint.`);
}

function isPet(value: unknown): value is Pet {
  const { id, name, categoryId, status } = Object(value) as Record<keyof Pet, unknown>;
  const areIntegers = typeof id === "bigint" && typeof categoryId === "bigint";
  return areIntegers && typeof name === "string" && typeof status === "string";
}

/** Whether these are animals whose ids increase, beginning after `last`. */
const isPage = (value: unknown, last: bigint): value is Pet[] =>
  Array.isArray(value) && value.every((pet, i) => isPet(pet) && pet.id > (i === 0 ? last : value[i - 1].id));

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
