//! Templates in Jinja2's words and in the engine's.

use super::*;

#[test]
fn what_the_engine_parses_stays_as_it_is() {
    for source in [
        "",
        "a { b } c",
        "{{ a % b }}{{ 7 % 2 }}{{ x.y % z }}",
        "{% for a in b %}{{ '%d' | format(a) }}{% endfor %}",
        "{# {% generation %} '%s' % x #}{{ \"#}\" }}",
        "{% raw %}{% generation %}{{ '%s' % x }}{%- endraw -%}{{ a }}",
        "{{ '{% generation %}' ~ '}}' ~ {'a': {}} }}{% if '%}' %}{% endif %}",
        "{{ 'it\\'s' }}{{ '\\u00e9\\n\\\\U0001F600' }}",
        "{{ 'never closed",
        "{% never closed",
        "{{ '%s' }}{{ generation }}{% set generation = 1 %}",
    ] {
        assert_eq!(translated(source), source);
    }
}

#[test]
fn what_it_does_not_parse_is_written_otherwise() {
    for (source, expected) in [
        (
            "a{%- generation -%}b{%+ endgeneration %}",
            "a{%- with -%}b{%+ endwith %}",
        ),
        ("{{ '%s' % x }}", "{{ '%s' |percent_format( x) }}"),
        (
            "{{ a ~ '%s=%s' % (a.b, c['d']) ~ e }}",
            "{{ a ~ '%s=%s' |percent_format( (a.b, c['d'])) ~ e }}",
        ),
        (
            "{{ \"%d\"%-x.y[0](1)|int + 2 }}",
            "{{ \"%d\"|percent_format(-x.y[0](1)|int) + 2 }}",
        ),
        (
            "{{ '%s' % ('%s' % 'a') }}",
            "{{ '%s' |percent_format( ('%s' |percent_format( 'a'))) }}",
        ),
        ("{{ '\\U0001F600a' }}", "{{ '😀a' }}"),
        ("{{ 'a\\\nb' }}", "{{ 'ab' }}"),
    ] {
        assert_eq!(translated(source), expected);
    }
}
