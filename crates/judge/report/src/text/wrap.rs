//! Line wrapping.

/// Returns the width of a text on a terminal. East Asian wide characters count as two columns, and
/// combining marks as none. The block of a character determines its width (Unicode Standard Annex
/// 11).
pub fn width(text: &str) -> usize {
    text.chars()
        .map(|c| match u32::from(c) {
            0x300..=0x36f | 0x200b..=0x200f | 0xfe00..=0xfe0f => 0,
            0x1100..=0x115f
            | 0x2e80..=0xa4cf
            | 0xac00..=0xd7a3
            | 0xf900..=0xfaff
            | 0xfe30..=0xfe6f
            | 0xff00..=0xff60
            | 0xffe0..=0xffe6
            | 0x1f300..=0x1faff
            | 0x20000..=0x3fffd => 2,
            _ => 1,
        })
        .sum()
}

/// Wraps a text at spaces into lines of at most `columns` columns. Longer words are broken. An
/// empty text becomes one empty line.
pub fn wrap(text: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(1);
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in text.split_whitespace() {
        let word_width = width(word);
        if used > 0 && used + 1 + word_width > columns {
            lines.push(String::new());
            used = 0;
        }
        if used > 0 {
            push(&mut lines, " ");
            used += 1;
        }
        if word_width <= columns {
            push(&mut lines, word);
            used += word_width;
            continue;
        }
        for c in word.chars() {
            let wide = width(c.encode_utf8(&mut [0; 4]));
            if used + wide > columns {
                lines.push(String::new());
                used = 0;
            }
            push(&mut lines, c.encode_utf8(&mut [0; 4]));
            used += wide;
        }
    }
    lines
}

fn push(lines: &mut [String], text: &str) {
    if let Some(line) = lines.last_mut() {
        line.push_str(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn breaks_at_spaces_and_within_long_words() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("/a/very/long/path", 6), ["/a/ver", "y/long", "/path"]);
        assert_eq!(wrap("", 7), [""]);
        assert_eq!(width("磁盘 db"), 7);
    }

    proptest! {
        #[test]
        fn no_line_is_too_long_and_no_word_is_lost(text in "\\PC{0,80}", columns in 2usize..30) {
            let lines = wrap(&text, columns);
            prop_assert!(lines.iter().all(|line| width(line) <= columns));
            let joined: String = lines.concat().split_whitespace().collect();
            prop_assert_eq!(joined, text.split_whitespace().collect::<String>());
        }
    }
}
