// Bookmarks identify the state of the store that a caller has seen. Callers who send the newest one read their own
// writes.

export const BOOKMARK_HEADER = "x-d1-bookmark";

export const bookmarkIn = ({ headers }: Request): string | null => headers.get(BOOKMARK_HEADER);

/** The response header with the newest bookmark of a session, if it has one. */
export function bookmarkHeaderOf(session: { getBookmark(): string | null }): Record<string, string> {
  const bookmark = session.getBookmark();
  return bookmark ? { [BOOKMARK_HEADER]: bookmark } : {};
}
