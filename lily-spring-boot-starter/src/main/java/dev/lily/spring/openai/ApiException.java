package dev.lily.spring.openai;

/** The endpoint itself refuses a request. Carries what the client is told; has no stack trace. */
final class ApiException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  private final transient ApiError error;

  ApiException(ApiError error) {
    super(error.message(), null, false, false);
    this.error = error;
  }

  ApiError error() {
    return error;
  }
}
