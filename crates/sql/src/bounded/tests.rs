//! The wrapper around functions: that none is without it, and that it foresees what they make.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, BinaryArray, ListBuilder, StringArray, StringBuilder};
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::TreeNode;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::execution::SessionStateDefaults;
use datafusion::logical_expr::{ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF};

use super::function::Bounded;
use super::growth::Growth;
use super::lengths::{array_len, scalar_len};
use super::results::Results;
use super::{Bounds, UNWRAPPED, wrapped};

fn bounds() -> Arc<Bounds> {
    Arc::new(Bounds::new(8 << 20))
}

fn function(name: &str) -> Arc<ScalarUDF> {
    let all = SessionStateDefaults::default_scalar_functions();
    let named = |function: &&Arc<ScalarUDF>| function.name() == name;
    Arc::clone(all.iter().find(named).unwrap_or_else(|| panic!("no {name}")))
}

fn text(text: &str) -> ColumnarValue {
    ColumnarValue::Scalar(ScalarValue::Utf8(Some(text.into())))
}

fn texts(texts: &[&str]) -> ColumnarValue {
    ColumnarValue::Array(Arc::new(StringArray::from(texts.to_vec())))
}

fn lists(lists: &[&[&str]]) -> ColumnarValue {
    let mut builder = ListBuilder::new(StringBuilder::new());
    for list in lists {
        list.iter().for_each(|text| builder.values().append_value(text));
        builder.append(true);
    }
    ColumnarValue::Array(Arc::new(builder.finish()))
}

/// Calls a function with arguments of the types that it takes.
fn call(
    function: &ScalarUDF,
    arguments: Vec<ColumnarValue>,
    rows: usize,
) -> datafusion::error::Result<ColumnarValue> {
    let arg_fields: Vec<_> =
        arguments.iter().map(|argument| Arc::new(Field::new("a", argument.data_type(), true))).collect();
    let scalar_arguments: Vec<_> = arguments
        .iter()
        .map(|argument| match argument {
            ColumnarValue::Scalar(scalar) => Some(scalar),
            ColumnarValue::Array(_) => None,
        })
        .collect();
    let return_field = function.return_field_from_args(ReturnFieldArgs {
        arg_fields: &arg_fields,
        scalar_arguments: &scalar_arguments,
    })?;
    function.invoke_with_args(ScalarFunctionArgs {
        args: arguments,
        arg_fields,
        number_rows: rows,
        return_field,
        config_options: Arc::new(ConfigOptions::default()),
    })
}

#[test]
fn every_function_is_behind_the_wrapper_or_has_a_reason() {
    let bounds = bounds();
    for function in SessionStateDefaults::default_scalar_functions() {
        let name = function.name().to_owned();
        let is_excepted = UNWRAPPED.iter().any(|(excepted, _)| *excepted == name);
        let again = wrapped(wrapped(function, &bounds), &bounds);
        let bounded = again.inner().downcast_ref::<Bounded>();
        assert_eq!(bounded.is_none(), is_excepted, "{name}");
        assert!(bounded.is_none_or(|bounded| !bounded.inner().inner().is::<Bounded>()), "{name} twice");
    }
    for (name, _) in UNWRAPPED {
        function(name);
    }
}

/// Of a call, that what it makes was foreseen.
#[track_caller]
fn check(name: &str, arguments: Vec<ColumnarValue>, rows: usize) {
    let bound = Growth::of(name).bound(&arguments, rows);
    let made = match call(&function(name), arguments, rows).unwrap() {
        ColumnarValue::Array(array) => array_len(&array),
        ColumnarValue::Scalar(scalar) => scalar_len(&scalar),
    };
    // what a row has beside its bytes is not foreseen
    assert!(made <= bound + 32 * rows, "{name} made {made} bytes, {bound} were foreseen");
    assert!(bound <= made * 300, "{name} made {made} bytes, as many as {bound} were foreseen");
}

#[test]
fn what_a_function_makes_is_foreseen() {
    let long = "x".repeat(500);
    let subject = ["aaaa", "", "banana", "täää"].map(|text| text.repeat(300));
    let subject: Vec<_> = subject.iter().map(String::as_str).collect();
    let list = lists(&[&["a", "b", "a"], &[], &["a"]]);
    for to in ["", "y", &long] {
        check("replace", vec![texts(&subject), text("a"), text(to)], 4);
        check("replace", vec![texts(&subject), texts(&["a", "", "an", "ä"]), texts(&[to, to, "", to])], 4);
        for flags in [vec![], vec![text("g")]] {
            let mut arguments = vec![texts(&subject), text("(a)|n"), text(&format!("\\1{to}\\1"))];
            arguments.extend(flags);
            check("regexp_replace", arguments, 4);
        }
        check("concat", vec![texts(&subject), text(to), texts(&subject)], 4);
        check("concat_ws", vec![text(to), texts(&subject), texts(&subject), texts(&subject)], 4);
        check(
            "overlay",
            vec![texts(&subject), text(to), ColumnarValue::Scalar(ScalarValue::Int64(Some(2)))],
            4,
        );
        check("array_to_string", vec![list.clone(), text(to)], 3);
        check("array_replace_all", vec![list.clone(), text("a"), text(to)], 3);
        check("array_append", vec![list.clone(), text(to)], 3);
        check("make_array", vec![texts(&subject), text(to)], 4);
    }
    check("translate", vec![texts(&subject), text("abn"), text("😀😀😀")], 4);
    check("regexp_match", vec![texts(&subject), text("((((.*))))")], 4);
    check("array_concat", vec![list.clone(), list.clone()], 3);
    check("arrays_zip", vec![list.clone(), list], 3);
    let time = ColumnarValue::Scalar(ScalarValue::TimestampSecond(Some(1_700_000_000), None));
    check("to_char", vec![time, text("%c %D %A %B")], 1);
}

#[test]
fn a_call_that_would_take_too_much_is_made_of_fewer_rows_at_a_time() {
    let rows = 3_000;
    let subject = format!("{}1", "b".repeat(99));
    let all = texts(&vec![subject.as_str(); rows]);
    let arguments = vec![all, text("[0-9]"), text(&"y".repeat(100)), text("g")];
    let bounds = bounds();
    assert!(Growth::of("regexp_replace").bound(&arguments, rows) > bounds.call_len_max);
    let function = wrapped(function("regexp_replace"), &bounds);
    let ColumnarValue::Array(made) = call(&function, arguments, rows).unwrap() else { panic!("one value") };
    assert_eq!((made.len(), array_len(&made)), (rows, rows * 199));
}

#[test]
fn what_is_too_long_is_refused_by_the_name_of_its_function() {
    let (long, other) = ("a".repeat(5_000), "y".repeat(5_000));
    let bounds = bounds();
    let replace = wrapped(function("replace"), &bounds);
    let refused = |subject: ColumnarValue, rows: usize| {
        let error = call(&replace, vec![subject, text("a"), text(&other)], rows).unwrap_err();
        assert!(
            matches!(error.find_root(), datafusion::error::DataFusionError::ResourcesExhausted(_)),
            "{error}"
        );
        assert!(
            error.message().contains("`replace`") && error.message().contains("`memory_len_max`"),
            "{error}"
        );
    };
    // one value, one row of several, and rows that are too long together
    refused(text(&long), 1);
    refused(texts(&["a", &long, "b"]), 3);
    refused(texts(&["a".repeat(1_000).as_str(); 10]), 10);
    // and what only shows after the call
    let upper = wrapped(function("upper"), &bounds);
    let error = call(&upper, vec![text(&"a".repeat((16 << 20) + 1))], 1).unwrap_err();
    assert!(error.message().contains("`upper`"), "{error}");
}

#[test]
fn results_count_for_as_long_as_somebody_holds_them() {
    let results = Results::new(10 << 20);
    let array = |len: usize| Arc::new(BinaryArray::from(vec![vec![0_u8; len].as_slice()])) as ArrayRef;
    let held: Vec<_> = (0..9).map(|_| array(1 << 20)).collect();
    for array in &held {
        results.add(array).unwrap();
        // once, however often it is a result, and whatever part of it
        results.add(&array.slice(0, 1)).unwrap();
    }
    for _ in 0..100 {
        results.add(&array(512 << 10)).unwrap();
    }
    assert!(results.add(&array(2 << 20)).is_err());
    let len = results.len();
    assert!((9 << 20..10 << 20).contains(&len), "{len}");
    drop(held);
    assert_eq!(results.len(), 0);
    results.add(&array(2 << 20)).unwrap();
}

#[test]
fn what_a_function_is_replaced_by_is_behind_the_wrapper() {
    use datafusion::logical_expr::simplify::SimplifyContext;
    use datafusion::logical_expr::{col, lit};
    use datafusion::optimizer::simplify_expressions::ExprSimplifier;
    let schema =
        DFSchema::from_unqualified_fields(vec![Field::new("a", DataType::Utf8, true)].into(), [].into());
    let context = SimplifyContext::builder().with_schema(Arc::new(schema.unwrap())).build();
    let concat = wrapped(function("concat"), &bounds());
    let expr = concat.call(vec![lit("x"), lit("y"), col("a")]);
    let simplified = ExprSimplifier::new(context).simplify(expr).unwrap();
    assert!(simplified.to_string().contains("xy"), "{simplified}");
    let is_found = simplified.exists(|expr| match expr {
        Expr::ScalarFunction(call) => Ok(call.func.inner().is::<Bounded>()),
        _ => Ok(false),
    });
    assert!(is_found.unwrap(), "{simplified}");
}
