//! What is at an offset into a thing of some type, as one writes it behind its name: `[3].x`.

use std::rc::Rc;

/// Most steps that are taken into a thing: types of damaged files may contain themselves.
pub(crate) const STEPS: usize = 64;

/// A type.
#[derive(Clone, Debug)]
pub(crate) struct Type<Id> {
    /// Its length, if the description says so.
    pub bytes: Option<u64>,
    /// What it is made of.
    pub shape: Shape<Id>,
}

/// What a type is made of.
#[derive(Clone, Debug)]
pub(crate) enum Shape<Id> {
    /// Nothing that has a name.
    Scalar,
    /// Another type by another name; none is `void`.
    Alias(Option<Id>),
    /// A pointer or reference; none is a pointer to `void`.
    Pointer(Option<Id>),
    /// Elements by rows, with the count of each dimension, if it is known.
    Array {
        /// The type of an element.
        element: Id,
        /// The first dimension first.
        counts: Vec<Option<u64>>,
    },
    /// Members, at the same place in a union.
    Struct(Vec<Member<Id>>),
}

/// A member or base class.
#[derive(Clone, Debug)]
pub(crate) struct Member<Id> {
    /// Its name; empty if it has none.
    pub name: String,
    /// The first byte that it has part in.
    pub start: u64,
    /// How many bytes it has part in, if that is not the length of its type.
    pub bytes: Option<u64>,
    /// Its type.
    pub of: Id,
    /// It is a class that this one is derived from.
    pub is_base: bool,
}

/// Where types come from.
pub(crate) trait Types {
    /// What stands for a type.
    type Id: Copy;
    /// The type.
    fn get(&self, id: Self::Id) -> Option<Rc<Type<Self::Id>>>;
}

/// What was found at an offset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MemberPath<Id> {
    /// What one writes behind the name.
    pub text: String,
    /// Its type, without other names for it.
    pub of: Id,
    /// How far into it the offset is.
    pub rest: u64,
}

/// The innermost part of a thing of type `of` that is at an offset.
pub(crate) fn part<T: Types>(types: &T, of: T::Id, offset: u64) -> MemberPath<T::Id> {
    let mut part = MemberPath { text: String::new(), of, rest: offset };
    for _ in 0..STEPS {
        let Some(kind) = types.get(part.of) else { break };
        let inner = match &kind.shape {
            Shape::Scalar | Shape::Pointer(_) | Shape::Alias(None) => None,
            Shape::Alias(Some(to)) => Some((String::new(), *to, part.rest)),
            Shape::Array { element, counts } => index(types, *element, counts, part.rest),
            Shape::Struct(members) => member(types, members, part.rest),
        };
        let Some((text, of, rest)) = inner else { break };
        part.text.push_str(&text);
        (part.of, part.rest) = (of, rest);
    }
    part
}

/// The length of a type in bytes, if it is known.
pub(crate) fn size<T: Types>(types: &T, mut of: T::Id) -> Option<u64> {
    let mut times = 1_u64;
    for _ in 0..STEPS {
        let kind = types.get(of)?;
        if let Some(bytes) = kind.bytes {
            return bytes.checked_mul(times);
        }
        match &kind.shape {
            Shape::Alias(Some(to)) => of = *to,
            Shape::Array { element, counts } => {
                for count in counts {
                    times = times.checked_mul((*count)?)?;
                }
                of = *element;
            }
            _ => return None,
        }
    }
    None
}

/// What a pointer points to, if this is one and what it points to has a length.
pub(crate) fn pointee<T: Types>(types: &T, of: T::Id) -> Option<(Option<T::Id>, u64)> {
    let mut of = of;
    for _ in 0..STEPS {
        match types.get(of)?.shape {
            Shape::Alias(Some(to)) => of = to,
            Shape::Pointer(to) => return Some((to, to.and_then(|to| size(types, to)).unwrap_or(0))),
            _ => return None,
        }
    }
    None
}

/// What is at an offset into a block that has one thing after the other; empty if they are bytes, of which nobody knows what
/// they are, or if the length of one is not known.
pub(crate) fn element<T: Types>(types: &T, of: T::Id, offset: u64) -> String {
    let Some(bytes) = size(types, of).filter(|bytes| *bytes > 0) else { return String::new() };
    if bytes == 1 {
        return String::new();
    }
    let (number, rest) = if is_open(types, of) { (0, offset) } else { (offset / bytes, offset % bytes) };
    format!("[{number}]{}", part(types, of, rest).text)
}

/// True if a type ends with an array of any length: then a block has only one such thing.
pub(crate) fn is_open<T: Types>(types: &T, mut of: T::Id) -> bool {
    for _ in 0..STEPS {
        let Some(kind) = types.get(of) else { return false };
        match &kind.shape {
            Shape::Alias(Some(to)) => of = *to,
            Shape::Struct(members) => match members.last() {
                Some(last) => of = last.of,
                None => return false,
            },
            Shape::Array { counts, .. } => return matches!(counts.first(), Some(None | Some(0))),
            _ => return false,
        }
    }
    false
}

type Inner<Id> = Option<(String, Id, u64)>;

fn index<T: Types>(types: &T, element: T::Id, counts: &[Option<u64>], offset: u64) -> Inner<T::Id> {
    let bytes = size(types, element).filter(|bytes| *bytes > 0)?;
    let (mut number, rest) = (offset / bytes, offset % bytes);
    // The last index counts fastest; the first one may have no end.
    let mut indices = vec![];
    for (dimension, count) in counts.iter().enumerate().rev() {
        let count = count.filter(|count| *count > 0);
        let (index, next) = match count {
            Some(count) => (number % count, number / count),
            None if dimension == 0 => (number, 0),
            None => return None,
        };
        indices.push(index);
        number = next;
    }
    if number > 0 || indices.is_empty() {
        return None;
    }
    let text = indices.iter().rev().map(|index| format!("[{index}]")).collect();
    Some((text, element, rest))
}

fn member<T: Types>(types: &T, members: &[Member<T::Id>], offset: u64) -> Inner<T::Id> {
    let holds = |member: &&Member<T::Id>| {
        let last = members.last().is_some_and(|last| std::ptr::eq(last, *member));
        let bytes = member.bytes.or_else(|| size(types, member.of));
        let into = offset.checked_sub(member.start);
        into.is_some_and(|into| bytes.is_some_and(|bytes| into < bytes) || last && is_open(types, member.of))
    };
    // Bases without members have a length of 1 and share their place with a member or another base.
    let found = members.iter().filter(|member| !member.is_base).find(holds);
    let bases = members.iter().filter(|member| member.is_base).filter(holds);
    let found = found.or_else(|| bases.max_by_key(|base| size(types, base.of)))?;
    Some((shown(&found.name), found.of, offset - found.start))
}

/// What one writes for a member. Names that belong to the libraries of C and C++ say nothing to those who use them:
/// `rows._M_impl._M_start` is `rows`.
pub(crate) fn shown(name: &str) -> String {
    if let Some(number) =
        name.strip_prefix("__").filter(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()))
    {
        // Rust's tuples.
        return format!(".{number}");
    }
    if name.is_empty() || name.starts_with("_M_") || name.starts_with("__") {
        String::new()
    } else {
        format!(".{name}")
    }
}

#[cfg(test)]
#[path = "layout_tests.rs"]
pub(crate) mod tests;
