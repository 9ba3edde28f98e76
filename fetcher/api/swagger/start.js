SwaggerUIBundle({
  url: "../openapi.json",
  dom_id: "#swagger-ui",
  deepLinking: true,
  // null: documents are not sent to the authors' validator
  validatorUrl: null,
});
