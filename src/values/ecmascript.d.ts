// JSON.rawJSON and a reviver's third argument, which the runtimes support and TypeScript does not declare yet:
// https://tc39.es/proposal-json-parse-with-source/

interface JSON {
  parse(text: string, reviver: (key: string, value: unknown, context: { source: string }) => unknown): unknown;
  /** A value that JSON.stringify prints as `text`, which must be the JSON of a primitive. */
  rawJSON(text: string): unknown;
}
