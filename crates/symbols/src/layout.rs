//! The field at an offset into an object, as a suffix of its name: `[3].x`.

use std::rc::Rc;

/// The limit of nesting: types of damaged files may contain themselves.
pub(crate) const STEPS: usize = 64;

/// A type.
#[derive(Clone, Debug)]
pub(crate) struct Type<Id> {
    /// Its size, if known.
    pub bytes: Option<u64>,
    /// Its structure.
    pub shape: Shape<Id>,
}

/// The structure of a type.
#[derive(Clone, Debug)]
pub(crate) enum Shape<Id> {
    /// Nothing that has a name.
    Scalar,
    /// Another type by another name; none is `void`.
    Alias(Option<Id>),
    /// A pointer or reference; none is a pointer to `void`.
    Pointer(Option<Id>),
    /// Elements in row-major order, with the count of each dimension, if known.
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
    /// Its first byte.
    pub start: u64,
    /// The bytes that it occupies, if that is not the size of its type (bit fields).
    pub bytes: Option<u64>,
    /// Its type.
    pub of: Id,
    /// It is a base class.
    pub is_base: bool,
}

/// A source of types.
pub(crate) trait Types {
    /// The identifier of a type.
    type Id: Copy;
    /// The type.
    fn get(&self, id: Self::Id) -> Option<Rc<Type<Self::Id>>>;
}

/// The field at an offset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MemberPath<Id> {
    /// The suffix of the name.
    pub text: String,
    /// Its type, without typedefs.
    pub of: Id,
    /// The remaining offset in it.
    pub rest: u64,
}

/// The innermost field of an object of type `of` at an offset.
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

/// The size of a type in bytes, if known.
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

/// The target type of a pointer, if this is one and the target has a size.
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

/// The field at an offset into a block with consecutive objects; empty if they are plain bytes, or if their size is
/// unknown.
pub(crate) fn element<T: Types>(types: &T, of: T::Id, offset: u64) -> String {
    let Some(bytes) = size(types, of).filter(|bytes| *bytes > 0) else { return String::new() };
    if bytes == 1 {
        return String::new();
    }
    let (number, rest) = if is_open(types, of) { (0, offset) } else { (offset / bytes, offset % bytes) };
    format!("[{number}]{}", part(types, of, rest).text)
}

/// True if a type ends with a flexible array: then a block has only one such object.
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
    // The last index varies fastest; the first dimension may be unbounded.
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
    // Empty bases have a size of 1 and share their offset with a member or another base.
    let found = members.iter().filter(|member| !member.is_base).find(holds);
    let bases = members.iter().filter(|member| member.is_base).filter(holds);
    let found = found.or_else(|| bases.max_by_key(|base| size(types, base.of)))?;
    Some((shown(&found.name), found.of, offset - found.start))
}

/// The suffix for a member. Internal names of the C and C++ libraries are left out: `rows._M_impl._M_start` is
/// `rows`.
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
