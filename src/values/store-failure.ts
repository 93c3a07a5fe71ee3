// A failure of the store, in the words that both sides of it need: src/d1/ makes it of what D1 reports, and src/http/
// makes a response of it.

/** A statement was sent, and the store failed or its answer is not usable: that is the cause. */
export class StoreFailure extends Error {
  /** Whether what was sent may have been stored nevertheless, and would be stored once more if it were sent again. */
  readonly mayBeStored: boolean;
  /** Seconds to wait before a retry. Undefined if the failure is not transient. */
  readonly retryAfter: number | undefined;

  constructor(cause: unknown, { mayBeStored, retryAfter }: Pick<StoreFailure, "mayBeStored" | "retryAfter">) {
    super("The store failed.", { cause });
    this.mayBeStored = mayBeStored;
    this.retryAfter = retryAfter;
  }
}
