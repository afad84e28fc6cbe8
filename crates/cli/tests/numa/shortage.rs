//! `gondwana exec` when the nodes that a program is bound to fill up.

use crate::guest::run;
use gondwana_guest::Ran;

/// Pages that node 2 has no room for.
const TOO_MANY: usize = 40_000;

/// The message when a program was killed for lack of memory on node 2.
fn said(what: &str) -> String {
    format!(
        "gondwana: {what} was ended by the kernel because node 2, which its memory must come from, had none left: with \
         --rset 'proc:3|mem:0-3' --memory local, the nearest nodes come first and the others then\n"
    )
}

/// The command's messages, without the shell's about killed processes.
fn sentences(ran: &Ran) -> String {
    let lines = ran.errors.lines().filter(|line| line.starts_with("gondwana: "));
    lines.map(|line| line.to_owned() + "\n").collect()
}

#[test]
fn a_program_that_fills_its_node_is_ended_with_a_sentence_that_says_why() {
    for user in ["root", "user"] {
        let command = format!("gondwana exec --rset node:2 -- witness pages mmap {TOO_MANY}");
        let Some(ran) = run(&format!("su {user} -c '{command}'")) else { return };
        assert_eq!((ran.status, ran.output.as_str(), sentences(&ran)), (137, "", said("witness")), "{ran}");
    }
}

#[test]
fn what_the_sentence_advises_helps() {
    let script = format!(
        "gondwana exec --rset 'proc:3|mem:0-3' --memory local -- witness pages mmap {TOO_MANY} |
            fold -w 1 | sort | uniq -c"
    );
    let Some(ran) = run(&script) else { return };
    assert_eq!(ran.errors, "");
    let text = ran.succeeded();
    assert!(text.contains(" 2\n") && text.lines().count() > 1, "{text}");
}

#[test]
fn threads_and_rules_that_are_bound_are_told_of_too() {
    let script = format!(
        "gondwana exec --threads 'proc:3' --memory node:2 -- witness pages malloc {TOO_MANY}
        gondwana exec --strict --malloc 'all=node:2' -- witness pages malloc {TOO_MANY}"
    );
    let Some(ran) = run(&script) else { return };
    let by_set = said("witness").replace("proc:3", "proc:0-3");
    let (reason, _) = by_set.split_once(": with ").unwrap();
    let by_rule = format!("{reason}: without --strict, allocations go to other nodes then\n");
    assert_eq!((ran.status, sentences(&ran)), (137, by_set.clone() + &by_rule), "{ran}");
}

#[test]
fn a_process_of_the_program_is_told_of_too() {
    let command = format!("witness pages mmap {TOO_MANY} 2>/dev/null; exit 3");
    let Some(ran) = run(&format!("gondwana exec --rset node:2 -- sh -c '{command}'")) else { return };
    assert_eq!((ran.status, sentences(&ran)), (3, said("a process of sh")), "{ran}");
}

#[test]
fn nothing_is_said_of_other_ends() {
    // One killed by another process, and one at the limit of a control group.
    let script = "gondwana exec --rset node:2 -- sh -c 'kill -KILL $$'
        test $? = 137 || exit 1
        cd /sys/fs/cgroup && echo +memory > cgroup.subtree_control && mkdir part && echo 16M > part/memory.max || exit
        (echo 0 > part/cgroup.procs; gondwana exec --rset node:2 -- witness pages mmap 8000)
        status=$?
        rmdir part
        exit $status";
    let Some(ran) = run(script) else { return };
    assert_eq!((ran.status, sentences(&ran)), (137, String::new()), "{ran}");
}

#[test]
fn a_program_that_has_a_parent_ends_as_it_would_by_itself() {
    let script = "gondwana exec --rset node:1 -- sh -c 'exit 7'
        echo $?
        gondwana exec --rset node:1 -- sh -c 'kill -TERM $$'
        echo $?
        gondwana exec --rset node:1 -- /missing
        echo $?";
    let Some(ran) = run(script) else { return };
    assert_eq!(ran.output, "7\n143\n127\n", "{ran}");
    assert_eq!(ran.errors.lines().last(), Some("gondwana: /missing: no such program"), "{ran}");
}

#[test]
fn signals_for_the_parent_are_for_the_program() {
    let script = "rm -f held && mkfifo held || exit
        witness job gondwana exec --rset node:1 -- \\
            sh -c 'trap \"exit 5\" USR1; echo $$ $PPID; while :; do :; done' > held &
        job=$!
        read process parent < held
        kill -TSTP $parent
        for stopped in $process $parent; do
            while ! grep -q 'State:.T' /proc/$stopped/status; do :; done
        done
        kill -CONT $parent
        while grep -q 'State:.T' /proc/$process/status; do :; done
        kill -USR1 $parent
        wait $job";
    let Some(ran) = run(script) else { return };
    assert_eq!((ran.status, ran.errors.as_str()), (5, ""), "{ran}");
}

#[test]
fn the_program_is_shown_for_its_parent_and_ends_with_it() {
    let script = "rm -f held && mkfifo held || exit
        gondwana exec --rset node:1 -- witness block 9 > held &
        parent=$!
        read process address < held
        gondwana where --json $parent | grep -o '\"process\": [0-9]*'
        echo '\"process\":' $process
        kill -KILL $parent
        while kill -0 $process 2>/dev/null; do :; done";
    let Some(ran) = run(script) else { return };
    let text = ran.succeeded();
    let (shown, process) = text.trim_end().split_once('\n').unwrap();
    assert_eq!(shown, process);
}
