use super::*;
use proptest::prelude::*;

/// Types by number.
#[derive(Debug)]
pub(crate) struct Numbered(Vec<Rc<Type<usize>>>);

impl Types for Numbered {
    type Id = usize;

    fn get(&self, id: usize) -> Option<Rc<Type<usize>>> {
        self.0.get(id).cloned()
    }
}

fn scalar(bytes: u64) -> Type<usize> {
    Type { bytes: Some(bytes), shape: Shape::Scalar }
}

fn member(name: &str, start: u64, of: usize) -> Member<usize> {
    Member { name: name.to_owned(), start, bytes: None, of, is_base: false }
}

pub(crate) fn numbered(types: Vec<Type<usize>>) -> Numbered {
    Numbered(types.into_iter().map(Rc::new).collect())
}

fn array(element: usize, counts: &[Option<u64>]) -> Type<usize> {
    Type { bytes: None, shape: Shape::Array { element, counts: counts.to_vec() } }
}

#[test]
fn padding_is_part_of_nothing() {
    let pair = Type { bytes: Some(16), shape: Shape::Struct(vec![member("a", 0, 0), member("b", 8, 1)]) };
    let types = numbered(vec![scalar(4), scalar(8), pair, array(2, &[Some(3)])]);
    let text = |offset| part(&types, 3, offset).text;
    assert_eq!([text(0), text(17), text(22), text(24)], ["[0].a", "[1].a", "[1]", "[1].b"]);
    assert_eq!(text(48), "");
    assert_eq!(size(&types, 3), Some(48));
}

#[test]
fn only_the_first_dimension_may_have_no_end() {
    let types = numbered(vec![scalar(2), array(0, &[None, Some(3)]), array(0, &[Some(3), None])]);
    assert_eq!(part(&types, 1, 2 * (3 * 7 + 2)).text, "[7][2]");
    assert_eq!(part(&types, 2, 2).text, "");
}

#[test]
fn names_of_the_language_s_own_libraries_are_left_out() {
    assert_eq!(["x", "_M_impl", "__data", "", "__0"].map(shown), [".x", "", "", "", ".0"]);
}

#[test]
fn types_that_contain_themselves_come_to_an_end() {
    let ring = Type { bytes: None, shape: Shape::Alias(Some(1)) };
    let back = Type { bytes: None, shape: Shape::Alias(Some(0)) };
    let inside = Type { bytes: Some(8), shape: Shape::Struct(vec![member("again", 0, 2)]) };
    let types = numbered(vec![ring, back, inside, array(3, &[Some(2)])]);
    assert_eq!(size(&types, 0), None);
    assert_eq!(pointee(&types, 0), None);
    assert_eq!(part(&types, 2, 0).text.matches(".again").count(), STEPS);
    assert_eq!(size(&types, 3), None);
    assert_eq!(element(&types, 3, 100), "");
}

/// Arbitrary types, also invalid ones.
fn any_type() -> impl Strategy<Value = Type<usize>> {
    let id = 0..12_usize;
    let count = prop_oneof![Just(None), any::<u64>().prop_map(Some), (0..5_u64).prop_map(Some)];
    let place = prop_oneof![any::<u64>(), 0..64_u64];
    let bytes = prop_oneof![Just(None), any::<u64>().prop_map(Some), (0..64_u64).prop_map(Some)];
    let made = (place, bytes.clone(), id.clone(), any::<bool>());
    let made =
        made.prop_map(|(start, bytes, of, is_base)| Member { name: "m".into(), start, bytes, of, is_base });
    let shape = prop_oneof![
        Just(Shape::Scalar),
        prop::option::of(id.clone()).prop_map(Shape::Alias),
        prop::option::of(id.clone()).prop_map(Shape::Pointer),
        (id, prop::collection::vec(count, 0..4))
            .prop_map(|(element, counts)| Shape::Array { element, counts }),
        prop::collection::vec(made, 0..4).prop_map(Shape::Struct),
    ];
    (bytes, shape).prop_map(|(bytes, shape)| Type { bytes, shape })
}

/// Ten types of which none contains itself.
pub(crate) fn types() -> impl Strategy<Value = Numbered> {
    // Each consists of earlier types, or of a missing one.
    fn earlier(of: &mut usize, number: usize) {
        *of = if *of < number { *of } else { usize::MAX };
    }
    prop::collection::vec(any_type(), 10).prop_map(|mut types| {
        for (number, kind) in types.iter_mut().enumerate() {
            match &mut kind.shape {
                Shape::Alias(Some(to)) => earlier(to, number),
                Shape::Array { element, .. } => earlier(element, number),
                Shape::Struct(members) => {
                    members.iter_mut().for_each(|member| earlier(&mut member.of, number))
                }
                Shape::Scalar | Shape::Pointer(_) | Shape::Alias(None) => {}
            }
        }
        numbered(types)
    })
}

proptest! {
    #[test]
    fn any_types_have_parts_or_none(types in prop::collection::vec(any_type(), 10), offset: u64) {
        let types = numbered(types);
        for of in 0..12 {
            part(&types, of, offset);
            part(&types, of, offset % 64);
            element(&types, of, offset);
            pointee(&types, of);
        }
    }
}
