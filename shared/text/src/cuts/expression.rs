//! What a regular expression that splits text does between two characters, found from the expression itself.

use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, Hir, HirKind};

/// The only condition on what stands around a match that is understood: white space that ends the text or goes on.
/// Without it an expression matches no less, and still nothing but white space there.
const TRAILING_SPACE: (&str, &str) = (r"\s+(?!\S)", r"\s+");

/// An expression without conditions on what stands around its matches.
pub(super) struct Expression(Hir);

/// What holds of a part of an expression.
struct Facts {
    /// Whether it matches nothing at all, too.
    is_nullable: bool,
    /// The characters that it can begin and end with.
    first: ClassUnicode,
    last: ClassUnicode,
    /// The characters that it surely matches alone.
    alone: ClassUnicode,
    /// Whether a way through it goes from a character on the left of the place on to the one on its right.
    crosses: bool,
}

/// A place in a text: after one of `left`, before `right`.
struct Place<'a> {
    left: &'a ClassUnicode,
    right: ClassUnicode,
}

impl Expression {
    /// Reads `expression`; `None` if it has conditions, or what is not understood.
    pub(super) fn parse(expression: &str) -> Option<Self> {
        let plain = expression.replace(TRAILING_SPACE.0, TRAILING_SPACE.1);
        let hir = regex_syntax::parse(&plain).ok()?;
        hir.properties().look_set().is_empty().then_some(Self(hir))
    }

    /// Whether no match reaches from a character of `left` to `right`, however matching goes on: the text on either
    /// side of such a place is split as if it stood alone.
    pub(super) fn parts(&self, left: &ClassUnicode, right: char) -> bool {
        let place = Place {
            left,
            right: single(right),
        };
        place.facts(&self.0).is_some_and(|facts| !facts.crosses)
    }

    /// Whether a match surely reaches over each character of `left`.
    pub(super) fn covers(&self, left: &ClassUnicode) -> bool {
        let place = Place {
            left,
            right: ClassUnicode::empty(),
        };
        // An empty match would come before one of a character.
        let covers = |facts: Facts| {
            let mut missing = left.clone();
            missing.difference(&facts.alone);
            !facts.is_nullable && missing.ranges().is_empty()
        };
        place.facts(&self.0).is_some_and(covers)
    }
}

impl Place<'_> {
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
                    crosses: once.crosses,
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

    /// Whether the place can be between what ends with `last` and what begins with `first`.
    fn is_between(&self, last: &ClassUnicode, first: &ClassUnicode) -> bool {
        meet(last, self.left) && meet(first, &self.right)
    }

    /// What holds of `before` and `next` after it.
    fn after(&self, before: &Facts, next: &Facts) -> Facts {
        // What comes first may take a character to itself and not give it back.
        let mut alone = next.alone.clone();
        alone.difference(&before.first);
        let none = ClassUnicode::empty();
        let alone = if before.is_nullable {
            alone
        } else {
            none.clone()
        };
        let whole = if next.is_nullable {
            &before.alone
        } else {
            &none
        };
        let first = if before.is_nullable {
            &next.first
        } else {
            &none
        };
        let last = if next.is_nullable {
            &before.last
        } else {
            &none
        };
        Facts {
            is_nullable: before.is_nullable && next.is_nullable,
            first: union(&before.first, first),
            last: union(&next.last, last),
            alone: union(&alone, whole),
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
        for known in crate::samples::EXPRESSIONS {
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
            // Words of one letter, and of those after a space, are not matched.
            r"\p{L}{2,}",
            r" \p{L}+|\p{N}",
            // These match nothing before they match a letter.
            r" *|\p{L}+",
            // What is taken first is not given back.
            r"\p{L}?+\p{L}",
            // Conditions on what stands around.
            r"\b\p{L}+",
            r"(?<! )\p{L}+|\p{L}+",
            r"\p{L}+(?=\s)",
        ] {
            assert!(!is_sure(unsure), "{unsure}");
        }
    }
}
