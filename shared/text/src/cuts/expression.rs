//! Analyses a regular expression that splits text: whether one of its matches can span two given characters.

use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, Hir, HirKind};

/// The only lookaround that is supported, and what it is replaced with. Without the lookahead the expression matches
/// the same white space and more of it, and no other characters.
const TRAILING_SPACE: (&str, &str) = (r"\s+(?!\S)", r"\s+");

/// A regular expression without lookaround.
pub(super) struct Expression(Hir);

/// Properties of a part of an expression.
struct Facts {
    /// Whether it matches the empty string.
    is_nullable: bool,
    /// The characters that its matches can begin with, and those that they can end with.
    first: ClassUnicode,
    last: ClassUnicode,
    /// Characters each of which, on its own, is certain to be matched.
    alone: ClassUnicode,
    /// Whether a match can span the place.
    crosses: bool,
}

/// A place in a text: after a character of `left` and before one of `right`.
struct CutPlace<'a> {
    left: &'a ClassUnicode,
    right: ClassUnicode,
}

impl Expression {
    /// Parses `expression`; `None` if it has other lookaround, or syntax that is not supported.
    pub(super) fn parse(expression: &str) -> Option<Self> {
        let plain = expression.replace(TRAILING_SPACE.0, TRAILING_SPACE.1);
        let hir = regex_syntax::parse(&plain).ok()?;
        hir.properties().look_set().is_empty().then_some(Self(hir))
    }

    /// Returns whether no match can span a character of `left` and `right`. Then the texts on either side of such a
    /// place are split as they would be on their own.
    pub(super) fn parts(&self, left: &ClassUnicode, right: char) -> bool {
        let place = CutPlace {
            left,
            right: single(right),
        };
        place.facts(&self.0).is_some_and(|facts| !facts.crosses)
    }

    /// Returns whether every character of `left` is certain to be part of a match.
    pub(super) fn covers(&self, left: &ClassUnicode) -> bool {
        let place = CutPlace {
            left,
            right: ClassUnicode::empty(),
        };
        // An expression that matches the empty string may do so instead of matching the character.
        let covers = |facts: Facts| {
            let mut missing = left.clone();
            missing.difference(&facts.alone);
            !facts.is_nullable && missing.ranges().is_empty()
        };
        place.facts(&self.0).is_some_and(covers)
    }
}

impl CutPlace<'_> {
    fn facts(&self, hir: &Hir) -> Option<Facts> {
        let facts = match hir.kind() {
            HirKind::Empty => Facts::empty(),
            HirKind::Literal(literal) => {
                let text = std::str::from_utf8(&literal.0).ok()?;
                text.chars().fold(Facts::empty(), |before, c| {
                    self.after(&before, &Facts::of(&single(c)))
                })
            }
            HirKind::Class(Class::Unicode(class)) => Facts::of(class),
            HirKind::Class(Class::Bytes(_)) | HirKind::Look(_) => return None,
            HirKind::Capture(capture) => self.facts(&capture.sub)?,
            HirKind::Repetition(repetition) => {
                let once = self.facts(&repetition.sub)?;
                let mut facts = Facts {
                    is_nullable: once.is_nullable || repetition.min == 0,
                    ..once
                };
                if repetition.max.is_none_or(|most| most > 1) {
                    facts.crosses |= self.is_between(&facts.last, &facts.first);
                }
                if repetition.min > 1 && !once.is_nullable {
                    facts.alone = ClassUnicode::empty();
                }
                facts
            }
            HirKind::Concat(parts) => {
                let mut facts = Facts::empty();
                for part in parts {
                    facts = self.after(&facts, &self.facts(part)?);
                }
                facts
            }
            HirKind::Alternation(parts) => {
                let mut parts = parts.iter().map(|part| self.facts(part));
                let first = parts.next()??;
                parts.try_fold(first, |either, part| Some(either.or(&part?)))?
            }
        };
        Some(facts)
    }

    /// Returns whether the place can be between a match that ends with one of `last` and one that begins with one of
    /// `first`.
    fn is_between(&self, last: &ClassUnicode, first: &ClassUnicode) -> bool {
        meet(last, self.left) && meet(first, &self.right)
    }

    /// Returns the properties of `before` followed by `next`.
    fn after(&self, before: &Facts, next: &Facts) -> Facts {
        // A possessive `before` may match a character of `next` and not give it back.
        let mut alone = next.alone.clone();
        alone.difference(&before.first);
        // What the one adds to the other where that may match nothing.
        let none = ClassUnicode::empty();
        let beside = |other: &Facts, class| if other.is_nullable { class } else { &none };
        Facts {
            is_nullable: before.is_nullable && next.is_nullable,
            first: union(&before.first, beside(before, &next.first)),
            last: union(&next.last, beside(next, &before.last)),
            alone: union(beside(before, &alone), beside(next, &before.alone)),
            crosses: before.crosses || next.crosses || self.is_between(&before.last, &next.first),
        }
    }
}

impl Facts {
    fn empty() -> Self {
        Self {
            is_nullable: true,
            ..Self::of(&ClassUnicode::empty())
        }
    }

    fn of(class: &ClassUnicode) -> Self {
        Self {
            is_nullable: false,
            first: class.clone(),
            last: class.clone(),
            alone: class.clone(),
            crosses: false,
        }
    }

    fn or(self, other: &Self) -> Self {
        Self {
            is_nullable: self.is_nullable || other.is_nullable,
            first: union(&self.first, &other.first),
            last: union(&self.last, &other.last),
            alone: union(&self.alone, &other.alone),
            crosses: self.crosses || other.crosses,
        }
    }
}

fn single(c: char) -> ClassUnicode {
    ClassUnicode::new([ClassUnicodeRange::new(c, c)])
}

fn union(one: &ClassUnicode, other: &ClassUnicode) -> ClassUnicode {
    let mut both = one.clone();
    both.union(other);
    both
}

fn meet(one: &ClassUnicode, other: &ClassUnicode) -> bool {
    let mut both = one.clone();
    both.intersect(other);
    !both.ranges().is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn letters() -> ClassUnicode {
        ClassUnicode::new([
            ClassUnicodeRange::new('a', 'z'),
            ClassUnicodeRange::new('一', '三'),
        ])
    }

    fn is_sure(expression: &str) -> bool {
        let expression = Expression::parse(expression);
        expression.is_some_and(|it| it.parts(&letters(), ' ') && it.covers(&letters()))
    }

    #[test]
    fn expressions_of_known_models_split_before_a_space() {
        for known in crate::tests::samples::splitting::EXPRESSIONS {
            assert!(is_sure(known), "{known}");
        }
    }

    #[test]
    fn what_may_reach_over_the_space_is_found() {
        for unsure in [
            r"\p{L}+ ?",
            r"\w+\s*|\p{L}+",
            r"(?:\p{L} )+|\p{L}+",
            r"\p{L}+( is)?",
            r"[\p{L} ]+",
            // The first does not match a single letter; the second matches letters only after a space.
            r"\p{L}{2,}",
            r" \p{L}+|\p{N}",
            // It matches the empty string before a letter.
            r" *|\p{L}+",
            // The optional letter may be matched possessively.
            r"\p{L}?+\p{L}",
            // Lookaround.
            r"\b\p{L}+",
            r"(?<! )\p{L}+|\p{L}+",
            r"\p{L}+(?=\s)",
        ] {
            assert!(!is_sure(unsure), "{unsure}");
        }
    }
}
