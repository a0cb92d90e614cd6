//! Errors in the shape that OpenAI's clients read.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tonic::Status;
use tonic_types::StatusExt;
use wire::failure::Failure;
use wire::status::{BadField, exceeds_context};

/// An error, as a gRPC client would get it.
#[derive(Debug)]
pub(super) struct ApiError {
    status: Status,
    /// The HTTP status, where it is not that of the failure.
    http: Option<StatusCode>,
    /// The request's own names of fields that gRPC names otherwise, beside [`SHARED_NAMES`]; none if the error names fields
    /// as the request does.
    names: Option<FieldNames>,
}

/// Pairs of a field's name over gRPC and its name in a request over HTTP; fields with one name are left out. Names that
/// end with a dot stand for all that begin so.
pub(super) type FieldNames = Vec<(&'static str, &'static str)>;

/// Names that all forms of requests share. Settings of a method, `settings.*` over gRPC, stand in `speculation`.
const SHARED_NAMES: [(&str, &str); 3] = [
    ("tenant", "user"),
    ("method", "speculation.method"),
    ("settings.", "speculation."),
];

/// Longest message of an error, and longest name of a field in it, in bytes.
const MAX_MESSAGE_BYTES: usize = 2 << 10;
const MAX_FIELD_BYTES: usize = 256;

/// Returns the beginning of a text of any length.
pub(super) fn beginning(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    format!("{}…", &text[..text.floor_char_boundary(most)])
}

impl From<Status> for ApiError {
    fn from(status: Status) -> Self {
        Self {
            status,
            http: None,
            names: None,
        }
    }
}

impl From<BadField> for ApiError {
    fn from(bad: BadField) -> Self {
        Status::from(bad).into()
    }
}

impl ApiError {
    /// Returns an error of the transport: the request did not come so far that a field could be wrong.
    pub(super) fn http(http: StatusCode, message: impl Into<String>) -> Self {
        Self {
            status: Status::invalid_argument(message),
            http: Some(http),
            names: None,
        }
    }

    /// Returns the error of a body that cannot be read: a model that is no text is not one that is not served.
    pub(super) fn unread(status: impl Into<Status>) -> Self {
        let status = status.into();
        let is_bad_field = Failure::of_status(&status) == Some(Failure::BadField);
        Self {
            http: is_bad_field.then_some(StatusCode::BAD_REQUEST),
            status,
            names: None,
        }
    }

    /// Has the error of a request that went the way of those over gRPC name fields as the request did, which calls them
    /// `names`.
    pub(super) fn naming(self, names: FieldNames) -> Self {
        let names = Some(names);
        Self { names, ..self }
    }

    /// Returns the name in the request of the field that is wrong, if the error is about one, and the message; neither is
    /// longer than an error need be, whatever the request holds.
    fn described(&self) -> (Option<String>, String) {
        let message = beginning(self.status.message(), MAX_MESSAGE_BYTES);
        let Some(field) = self.field() else {
            return (None, message);
        };
        let field = beginning(&field, MAX_FIELD_BYTES);
        let name = self.name_of(&field);
        let name = name.as_ref().unwrap_or(&field);
        let message = if exceeds_context(&self.status) {
            // It begins with OpenAI's words, which clients look for, and not with the field's name.
            let problem = message.strip_prefix(&format!("{field}: "));
            problem.unwrap_or(&message).replace(&field, name)
        } else {
            message.replacen(&field, name, 1)
        };
        (Some(name.clone()), message)
    }

    /// Returns the name that the request gives to what gRPC calls `field`, if that is another.
    fn name_of(&self, field: &str) -> Option<String> {
        let mut names = SHARED_NAMES.iter().chain(self.names.as_ref()?);
        names.find_map(|(grpc, http)| match grpc.strip_suffix('.') {
            Some(_) => Some(format!("{http}{}", field.strip_prefix(grpc)?)),
            None => (*grpc == field).then(|| (*http).to_owned()),
        })
    }

    fn code(&self) -> StatusCode {
        if let Some(http) = self.http {
            return http;
        }
        let failure = Failure::of_status(&self.status).unwrap_or(Failure::Internal);
        if failure == Failure::BadField && self.field().as_deref() == Some("model") {
            return StatusCode::NOT_FOUND;
        }
        StatusCode::from_u16(failure.http_status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// Returns the field that is wrong, if one is.
    fn field(&self) -> Option<String> {
        let details = self.status.get_details_bad_request()?;
        let violation = details.field_violations.into_iter().next()?;
        Some(violation.field)
    }

    /// Returns `{"error": {message, type, param, code}}`.
    pub(super) fn body(&self) -> Value {
        let code = self.code();
        let (kind, name) = match code.as_u16() {
            401 => ("authentication_error", json!("invalid_api_key")),
            404 if self.http.is_none() => ("invalid_request_error", json!("model_not_found")),
            429 => ("rate_limit_error", json!("rate_limit_exceeded")),
            400..500 if exceeds_context(&self.status) => {
                ("invalid_request_error", json!("context_length_exceeded"))
            }
            400..500 => ("invalid_request_error", Value::Null),
            _ => ("server_error", Value::Null),
        };
        let (param, message) = self.described();
        json!({
            "error": {
                "message": message,
                "type": kind,
                "param": param,
                "code": name,
            }
        })
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = (self.code(), Json(self.body())).into_response();
        let retry = self.status.get_details_retry_info();
        if let Some(delay) = retry.and_then(|info| info.retry_delay) {
            // Whole seconds, and none too early.
            let seconds = delay.as_secs_f64().ceil().max(1.0) as u64;
            let headers = response.headers_mut();
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tonic::Code;
    use wire::status::overloaded;

    use super::*;

    /// Clients decide by status and type whether they try again.
    #[test]
    fn each_failure_has_the_type_and_the_code_that_clients_look_for() {
        let bad = |field: &str| Status::from(BadField::new(field, "wrong"));
        let of = |code: Code| Status::new(code, "why");
        let invalid = "invalid_request_error";
        for (status, http, kind, code) in [
            (bad("stop"), 400, invalid, Value::Null),
            (bad("model"), 404, invalid, json!("model_not_found")),
            (
                BadField::beyond_context("prompt", 512, "too long").into(),
                400,
                invalid,
                json!("context_length_exceeded"),
            ),
            (
                of(Code::Unauthenticated),
                401,
                "authentication_error",
                json!("invalid_api_key"),
            ),
            (of(Code::Aborted), 409, invalid, Value::Null),
            (
                overloaded("busy", Duration::from_secs(1)),
                429,
                "rate_limit_error",
                json!("rate_limit_exceeded"),
            ),
            (of(Code::Cancelled), 499, invalid, Value::Null),
            (of(Code::Internal), 500, "server_error", Value::Null),
            (of(Code::Unimplemented), 501, "server_error", Value::Null),
            (of(Code::Unavailable), 503, "server_error", Value::Null),
            (of(Code::DeadlineExceeded), 504, "server_error", Value::Null),
        ] {
            let error = ApiError::from(status);
            let told = error.body()["error"].clone();
            let found = (error.code().as_u16(), &told["type"], &told["code"]);
            assert_eq!(found, (http, &json!(kind), &code), "{told}");
        }
    }

    #[test]
    fn nobody_is_told_to_come_back_too_early() {
        for (millis, expected) in [(0, "1"), (1, "1"), (1_000, "1"), (1_001, "2"), (1_500, "2")] {
            let status = overloaded("busy", Duration::from_millis(millis));
            let response = ApiError::from(status).into_response();
            let told = response.headers().get(header::RETRY_AFTER);
            assert_eq!(told.expect("a time"), expected, "{millis} ms");
        }
    }
}
