//! The table of limits says what the code does.

use server::limits::Limit;

const TABLE: &str = include_str!("../../../docs/reference/limits.md");

/// The rows under the heading `section`, without the head of the table.
fn rows(section: &str) -> Vec<&'static str> {
    let after = TABLE.split_once(&format!("\n## {section}\n"));
    let (_, after) = after.unwrap_or_else(|| panic!("no section {section}"));
    let section = after.split("\n## ").next().unwrap_or_default();
    let rows = section.lines().filter(|line| line.starts_with('|'));
    rows.skip(2).collect()
}

#[test]
fn the_table_of_limits_is_what_the_services_are_built_with() {
    let sections: [(&str, Vec<Limit>); 4] = [
        ("Every service", server::limits::limits()),
        ("Coordinator", coordinator::limits()),
        ("Drafter and verifier", drafter::limits()),
        ("Drafter and verifier", verifier::limits()),
    ];
    for (section, limits) in sections {
        let expected: Vec<_> = limits.iter().map(Limit::row).collect();
        assert_eq!(
            rows(section),
            expected,
            "docs/reference/limits.md, {section}; it should be\n{}\n",
            expected.join("\n")
        );
    }
}
