// A failure of the store, as HTTP and D1 both need to know it: src/d1/ decides what D1's report means, and src/http/
// turns that into a response.

/** A statement was sent, and the store failed, or its answer is not usable: `cause` says which. */
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
