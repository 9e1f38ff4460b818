//! The syntax that is parsed: `DataFusion`'s generic one, with the precedences of `PostgreSQL` where the generic ones surprise.

use std::any::TypeId;

use datafusion::sql::sqlparser::ast::Expr;
use datafusion::sql::sqlparser::dialect::{Dialect, GenericDialect, Precedence};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::Token;

/// The generic dialect with these precedences, from the closest:
///
/// ```text
/// .   ::   [ ]   unary + -   AT TIME ZONE   * / %   + -
/// any other operator: || -> ->> ? ~ & | ^ << >> OPERATOR() and the like
/// BETWEEN IN LIKE ILIKE SIMILAR   = <> < <= > >=   IS   NOT   AND   OR
/// ```
///
/// What `PostgreSQL`'s clients send when they put a session back is read as well.
#[derive(Debug)]
pub(super) struct Syntax;

const GENERIC: GenericDialect = GenericDialect {};

/// Answers as the generic dialect.
macro_rules! generic {
    ($($name:ident,)*) => {
        $(fn $name(&self) -> bool {
            GENERIC.$name()
        })*
    };
}

impl Dialect for Syntax {
    // whatever the parser does for the generic dialect by name, it does for this one
    fn dialect(&self) -> TypeId {
        TypeId::of::<GenericDialect>()
    }

    fn prec_value(&self, precedence: Precedence) -> u8 {
        use Precedence as P;
        match precedence {
            P::PgOther | P::Ampersand | P::Caret | P::Pipe => {
                u8::midpoint(GENERIC.prec_value(P::PlusMinus), GENERIC.prec_value(P::Xor))
            }
            P::Like => GENERIC.prec_value(P::Between),
            P::Eq => u8::midpoint(GENERIC.prec_value(P::Between), GENERIC.prec_value(P::Is)),
            other => GENERIC.prec_value(other),
        }
    }

    // those that the parser gives another precedence than `PostgreSQL`
    fn get_next_precedence(&self, parser: &Parser<'_>) -> Option<Result<u8, ParserError>> {
        let is_other_operator = match &parser.peek_token_ref().token {
            Token::StringConcat
            | Token::CaretAt
            | Token::Tilde
            | Token::TildeAsterisk
            | Token::ExclamationMarkTilde
            | Token::ExclamationMarkTildeAsterisk
            | Token::DoubleTilde
            | Token::DoubleTildeAsterisk
            | Token::ExclamationMarkDoubleTilde
            | Token::ExclamationMarkDoubleTildeAsterisk => true,
            Token::Word(word) => word.quote_style.is_none() && word.keyword == Keyword::OPERATOR,
            _ => false,
        };
        is_other_operator.then(|| Ok(self.prec_value(Precedence::PgOther)))
    }

    // The parser reads all that follows `IS DISTINCT FROM`, `AND` and `OR` included.
    fn parse_infix(
        &self,
        parser: &mut Parser<'_>,
        left: &Expr,
        precedence: u8,
    ) -> Option<Result<Expr, ParserError>> {
        let make = if parser.parse_keywords(&[Keyword::IS, Keyword::DISTINCT, Keyword::FROM]) {
            Expr::IsDistinctFrom
        } else if parser.parse_keywords(&[Keyword::IS, Keyword::NOT, Keyword::DISTINCT, Keyword::FROM]) {
            Expr::IsNotDistinctFrom
        } else {
            return None;
        };
        let right = parser.parse_subexpr(precedence);
        Some(right.map(|right| make(Box::new(left.clone()), Box::new(right))))
    }

    fn supports_listen_notify(&self) -> bool {
        true
    }

    fn is_delimited_identifier_start(&self, character: char) -> bool {
        GENERIC.is_delimited_identifier_start(character)
    }

    fn is_identifier_start(&self, character: char) -> bool {
        GENERIC.is_identifier_start(character)
    }

    fn is_identifier_part(&self, character: char) -> bool {
        GENERIC.is_identifier_part(character)
    }

    generic! {
        supports_unicode_string_literal,
        supports_partition_by_after_order_by,
        supports_array_join_syntax,
        supports_group_by_expr,
        supports_group_by_with_modifier,
        supports_left_associative_joins_without_parens,
        supports_connect_by,
        supports_match_recognize,
        supports_pipe_operator,
        supports_start_transaction_modifier,
        supports_window_function_null_treatment_arg,
        supports_dictionary_syntax,
        supports_window_clause_named_window_reference,
        supports_parenthesized_set_variables,
        supports_select_wildcard_except,
        support_map_literal_syntax,
        allow_extract_custom,
        allow_extract_single_quotes,
        supports_extract_comma_syntax,
        supports_create_view_comment_syntax,
        supports_parens_around_table_factor,
        supports_values_as_table_factor,
        supports_create_index_with_clause,
        supports_explain_with_utility_options,
        supports_limit_comma,
        supports_update_order_by,
        supports_from_first_select,
        supports_projection_trailing_commas,
        supports_asc_desc_in_column_definition,
        supports_try_convert,
        supports_bitwise_shift_operators,
        supports_comment_on,
        supports_load_extension,
        supports_named_fn_args_with_assignment_operator,
        supports_struct_literal,
        supports_empty_projections,
        supports_nested_comments,
        supports_multiline_comment_hints,
        supports_user_host_grantee,
        supports_string_escape_constant,
        supports_array_typedef_with_brackets,
        supports_match_against,
        supports_set_names,
        supports_comma_separated_set_assignments,
        supports_filter_during_aggregation,
        supports_select_wildcard_exclude,
        supports_data_type_signed_suffix,
        supports_interval_options,
        supports_quote_delimited_string,
        supports_select_wildcard_replace,
        supports_select_wildcard_ilike,
        supports_select_wildcard_rename,
        supports_optimize_table,
        supports_install,
        supports_detach,
        supports_prewhere,
        supports_with_fill,
        supports_limit_by,
        supports_interpolate,
        supports_settings,
        supports_select_format,
        supports_comment_optimizer_hint,
        supports_constraint_keyword_without_name,
        supports_key_column_option,
        supports_comma_separated_trim,
        supports_cte_without_as,
        supports_select_item_multi_column_alias,
        supports_xml_expressions,
    }
}
