// The page shows a response to the last digit: Swagger UI would print its own reading of the JSON, in which integers
// beyond 2^53 are rounded.

const exactNumber = (_key, value, { source }) => (typeof value === "number" ? JSON.rawJSON(source) : value);
const indented = (json) => JSON.stringify(JSON.parse(json, exactNumber), null, 2);

const exactResponses = () => ({
  wrapComponents: {
    responseBody:
      (ResponseBody, { React }) =>
      (props) =>
        React.createElement(
          ResponseBody,
          props.contentType === "application/json"
            ? { ...props, content: indented(props.content), contentType: "text/plain" }
            : props,
        ),
  },
});

window.SwaggerUIBundle({
  url: "/openapi.json",
  dom_id: "#reference",
  deepLinking: true,
  defaultModelsExpandDepth: 0,
  plugins: [exactResponses],
  tryItOutEnabled: true,
  validatorUrl: null,
});
