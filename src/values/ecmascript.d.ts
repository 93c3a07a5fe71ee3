// JSON.rawJSON, which the runtimes support and TypeScript's library does not declare yet:
// https://tc39.es/proposal-json-parse-with-source/

interface JSON {
  /** A value that JSON.stringify prints as `text`, which must be the JSON of a primitive. */
  rawJSON(text: string): unknown;
}
