// What opens the gate of a trial Worker. The header's name is also in src/trial.ts, which exports nothing but its
// handler.

export const TRIAL_HEADER = "Trial-Key";

/** A key for one deployment. It has 122 random bits. */
export const makeTrialKey = (): string => crypto.randomUUID();
