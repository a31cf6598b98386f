//! Converts JSON values into Python objects.

use pyo3::{
    IntoPyObjectExt,
    prelude::*,
    types::{PyDict, PyList},
};
use serde_json::{Map, Value};

/// A JSON object that becomes a Python dictionary.
pub(crate) struct JsonObject(pub(crate) Map<String, Value>);

impl<'py> IntoPyObject<'py> for JsonObject {
    type Target = PyDict;
    type Output = Bound<'py, PyDict>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        object(py, &self.0)
    }
}

fn object<'py>(py: Python<'py>, values: &Map<String, Value>) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (key, each) in values {
        dict.set_item(key, value(py, each)?)?;
    }
    Ok(dict)
}

fn value<'py>(py: Python<'py>, json: &Value) -> PyResult<Bound<'py, PyAny>> {
    match json {
        Value::Null => Ok(py.None().into_bound(py)),
        Value::Bool(truth) => truth.into_bound_py_any(py),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(number), _) => number.into_bound_py_any(py),
            (None, Some(number)) => number.into_bound_py_any(py),
            (None, None) => number.as_f64().into_bound_py_any(py),
        },
        Value::String(text) => text.into_bound_py_any(py),
        Value::Array(values) => {
            let values = values.iter().map(|each| value(py, each)).collect::<PyResult<Vec<_>>>()?;
            PyList::new(py, values).map(Bound::into_any)
        }
        Value::Object(values) => object(py, values).map(Bound::into_any),
    }
}
