// What the Node side asks of the Worker side: how often to call which handler with which request. Shared by both, so
// it names no type of either runtime.

/** The statuses are spread evenly; `sold` is rare: as many animals at every size. */
export const RARE = { status: "sold", animals: 50 };

/** What is asked for, in words for the tables. */
export const OPERATIONS = {
  first: "list 20",
  deep: "list 20, deep inside",
  filtered: "list 100, filtered",
  rare: "list 20, rare status",
  get: "get",
  create: "create",
};
export type Operation = keyof typeof OPERATIONS;

/** `none` answers without doing anything: what it takes is the cost of calling, and of making the requests. */
export type Subject = "service" | "floor" | "none";

export interface Call {
  subject: Subject;
  operation: Operation;
  /** In animals: which of the databases. */
  size: number;
}

export interface Batch extends Call {
  calls: number;
}

export interface Filling {
  size: number;
  /** The SQL that makes the tables. */
  schema: string;
}

export type Command = ({ do: "fill" } & Filling) | ({ do: "answer" } & Call) | ({ do: "run" } & Batch);

/** Per call. */
export interface Rows {
  read: number;
  written: number;
}
