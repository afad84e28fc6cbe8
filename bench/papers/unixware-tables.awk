# The tables and charts of unixware-tables, from its lines of results.

function per_minute(name, users, nodes) { return users * 2 / seconds[name, users, nodes] * 60 }
function has(name, users, nodes) { return (name, users, nodes) in seconds }
function share(part, whole) { return sprintf("%+.0f %%", (part / whole - 1) * 100) }
# The greatest throughput; `at_peak` is the number of users.
function peak(name, nodes,    at, best, value) {
    best = 0
    for (at = 1; at <= count; at++) {
        if (!has(name, users_of[at], nodes)) continue
        value = per_minute(name, users_of[at], nodes)
        if (value > best) { best = value; at_peak = users_of[at] }
    }
    return best
}
function by_node(name, users, which,    text, at) {
    for (at = 0; at < 3; at++) text = text (at ? ", " : "") idle[name, users, 3, at, which]
    return text
}
function mean(name, users, nodes, which,    sum, at) {
    for (at = 0; at < nodes; at++) sum += idle[name, users, nodes, at, which]
    return sum / nodes
}
function write(what) { print what >svg }
function label(x, y, what) { write(sprintf("<text x=\"%.0f\" y=\"%.0f\">%s</text>", x, y, what)) }
# Lines of a chart: users are spread evenly, values from 0 to `most`.
function frame(x, y, title) {
    left = x; bottom = y + 150
    label(x, y - 8, title)
    write(sprintf("<path d=\"M%d %d v150 h280\" stroke=\"black\" fill=\"none\"/>", x, y))
    keys = 0
}
function dashes(dash) { return dash == "" ? "" : " stroke-dasharray=\"" dash "\"" }
function key(colour, dash, what) {
    write(sprintf("<path d=\"M%d %d h24\" stroke=\"%s\" stroke-width=\"2\"%s/>", left + 290, \
        bottom - 140 + keys * 16, colour, dashes(dash)))
    label(left + 318, bottom - 136 + keys++ * 16, what)
}
function line(text, most, colour, dash, what,    parts, n, at, path) {
    n = split(text, parts, " ")
    for (at = 1; at <= n; at++)
        path = path (at == 1 ? "M" : "L") (left + 10 + (at - 1) * 270 / (n > 1 ? n - 1 : 1)) " " (bottom - parts[at] / most * 145) " "
    write(sprintf("<path d=\"%s\" stroke=\"%s\" stroke-width=\"2\"%s fill=\"none\"/>", path, colour, dashes(dash)))
    key(colour, dash, what)
}
function axis(text,    parts, n, at) {
    n = split(text, parts, " ")
    for (at = 1; at <= n; at++) label(left + 2 + (at - 1) * 270 / (n > 1 ? n - 1 : 1), bottom + 14, parts[at])
}
# Values of a system divided by what is given, for the users that ran.
function series(name, nodes, list, of,    parts, n, at, text) {
    n = split(list, parts, " ")
    for (at = 1; at <= n; at++) if (has(name, parts[at], nodes)) text = text " " per_minute(name, parts[at], nodes) / of
    return text
}
function only(list, values,    a, b, n, at, text) {
    n = split(list, a, " "); split(values, b, " ")
    for (at = 1; at <= n; at++) if (has("binding", a[at], 3)) text = text " " b[at]
    return text
}
function ran(list, name, nodes,    a, n, at, text) {
    n = split(list, a, " ")
    for (at = 1; at <= n; at++) if (has(name, a[at], nodes)) text = text " " a[at]
    return text
}

BEGIN {
    count = split("1 8 16 24 32 48 64 80 96 128 256", users_of, " ")
    sdet = "1 8 16 24 32 64 128 256"; aim = "32 48 64 80 96 128 256"
    split(sdet, sdet_of, " "); split(aim, aim_of, " ")
    split("43 30 12 5 4 2 2 1", smp_wio, " "); split("49 4 4 3 3 2 0 0", smp_idle, " ")
    split("24 28 14 6 9 4 9 8", numa_wio, " "); split("70 15 7 15 12 38 29 25", numa_idle, " ")
    throughput["slb"] = "1803 2270 2396 2256 2272 2277 2207"
    throughput["dlb"] = "1755 2331 2469 2445 2444 2393 2228"
    throughput["binding"] = "1930 2388 2518 2622 2763 2532 2292"
    title["slb"] = "SLB"; title["dlb"] = "DLB"; title["binding"] = "binding"
    table3["slb"] = "5,2,2 8,1,2 4,1,1 3,1,1 4,0,0 4,1,1 2,1,1"
    table3["dlb"] = "3,2,9 2,1,5 1,1,4 1,1,3 1,1,3 0,0,1 0,0,1"
    table3["binding"] = "3,3,2 1,4,4 1,1,1 0,0,0 0,1,1 0,0,0 0,0,1"
    table4["slb"] = "53,28,28 - 50,6,6 - 50,7,10 50,7,6 50,5,5"
    table4["dlb"] = "35,30,86 - 13,9,41 - 20,7,40 16,3,30 13,3,33"
    table4["binding"] = "35,47,37 - 17,22,22 - 10,12,12 8,13,11 3,7,7"
    split("1.96 1.22 1.12 0.90 0.87 0.78 0.73", table5, " ")
    split("2.97 4.24 12.25", figure7, " ")
    split("1505.9 2377.8 2763.6", figure6, " ")
    split("slb dlb binding", policies, " ")
}
{
    seconds[$1, $2, $3] = $4
    locks[$1, $2, $3] = $5; names[$1, $2, $3] = $6; pages[$1, $2, $3] = $7; copies[$1, $2, $3] = $8; kernel[$1, $2, $3] = $9
    far[$1, $2, $3] = $10
    for (at = 0; at < $3; at++) { idle[$1, $2, $3, at, 0] = $(11 + 2 * at); idle[$1, $2, $3, at, 1] = $(12 + 2 * at) }
}
END {
    print "Table 1, averages over two nodes; figure 3, the throughput of the kernel for CC-NUMA above that for SMP:\n"
    print "| users | SMP: % wio | paper | % idle | paper | CC-NUMA: % wio | paper | % idle | paper | throughput, scripts/min | above SMP |"
    print "|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
    for (at = 1; at <= 8; at++) {
        users = sdet_of[at]
        if (!has("numa", users, 2)) continue
        printf "| %d | %.0f | %d | %.0f | %d | %.0f | %d | %.0f | %d | %.0f | %s |\n", users, mean("smp", users, 2, 1), smp_wio[at], \
            mean("smp", users, 2, 0), smp_idle[at], mean("numa", users, 2, 1), numa_wio[at], mean("numa", users, 2, 0), \
            numa_idle[at], per_minute("numa", users, 2), share(per_minute("numa", users, 2), per_minute("smp", users, 2))
    }
    print "\nFigure 3 in the paper: 10 to 28 % more; 13.2 % at 24 users."
    if (has("numa", 24, 2))
        printf "Figure 4, 24 users on two nodes: SMP %.1f %% of the time in locks and %.1f %% in copies (paper: 15.1 and 7.8), " \
            "CC-NUMA %.1f and %.1f (8.8 and 4.9).\n", locks["smp", 24, 2], copies["smp", 24, 2], locks["numa", 24, 2], copies["numa", 24, 2]
    one = peak("numa", 1); two = peak("numa", 2)
    printf "Figure 5: the peak with two nodes is %s of that with one (paper: +19 %%); SMP %s.\n", share(two, one), \
        share(peak("smp", 2), peak("smp", 1))

    if (!has("binding", 32, 3)) exit
    print "\nTable 2, scripts/min on three nodes, in % of the peak of binding (paper: jobs/min, in % of 2763):\n"
    printf "| users |"
    for (at = 1; at <= 7; at++) if (has("binding", aim_of[at], 3)) { printf " %d | paper |", aim_of[at]; bar = bar "--:|--:|" }
    print "\n|---|" bar
    top = peak("binding", 3)
    for (p = 1; p <= 3; p++) {
        split(throughput[policies[p]], figures, " ")
        printf "| %s |", title[policies[p]]
        for (at = 1; at <= 7; at++)
            if (has("binding", aim_of[at], 3))
                printf " %.0f | %.0f |", per_minute(policies[p], aim_of[at], 3) / top * 100, figures[at] / 27.63
        print ""
    }
    for (table = 3; table <= 4; table++) {
        printf "\nTable %d, %s of each node (paper):\n\n| users |", table, table == 3 ? "% wio" : "% idle"
        bar = ""
        for (at = 1; at <= 7; at++) if (has("binding", aim_of[at], 3)) { printf " %d |", aim_of[at]; bar = bar "---|" }
        print "\n|---|" bar
        for (p = 1; p <= 3; p++) {
            split(table == 3 ? table3[policies[p]] : table4[policies[p]], figures, " ")
            printf "| %s |", title[policies[p]]
            for (at = 1; at <= 7; at++)
                if (has("binding", aim_of[at], 3))
                    printf " %s (%s) |", by_node(policies[p], aim_of[at], 4 - table), figures[at]
            print ""
        }
    }
    print "\nTable 5, misses of the far memory caches: for 10 million accesses here, for 10 million instructions in the paper:\n"
    print "| users | misses | paper |\n|--:|--:|--:|"
    for (at = 1; at <= 7; at++)
        if (has("binding", aim_of[at], 3)) printf "| %d | %d | %s |\n", aim_of[at], far["binding", aim_of[at], 3], table5[at]

    print "\nFigures 6 and 7, binding:\n"
    print "| nodes | peak, scripts/min | at users | of one node | paper | time in spin locks at 96 users, % | paper | name cache | free pages | in the kernel |"
    print "|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
    last = has("binding", 96, 3) ? 96 : 32
    for (nodes = 1; nodes <= 3; nodes++) {
        best[nodes] = peak("binding", nodes)
        printf "| %d | %.0f | %d | %.2f | %.2f | %.1f | %.1f | %.1f | %.1f | %.0f |\n", nodes, best[nodes], at_peak, \
            best[nodes] / best[1], figure6[nodes] / figure6[1], locks["binding", last, nodes], figure7[nodes], \
            names["binding", last, nodes], pages["binding", last, nodes], kernel["binding", last, nodes]
    }
    if (last != 96) print "\n(time in spin locks: at 32 users)"
    if (has("binding", 256, 3))
        printf "\nAt 256 users on three nodes, spin locks take %.1f %% (paper: 23.8).\n", locks["binding", 256, 3]

    write("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"980\" height=\"460\" font-family=\"sans-serif\" font-size=\"11\">")
    write("<rect width=\"980\" height=\"460\" fill=\"white\"/>")
    colour["slb"] = "#c05621"; colour["dlb"] = "#2f855a"; colour["binding"] = "#2b6cb0"
    frame(20, 40, "Table 2: throughput by users, three nodes; the peak of binding = 1")
    for (p = 1; p <= 3; p++) {
        line(series(policies[p], 3, aim, top), 1.1, colour[policies[p]], "", title[policies[p]])
        line(only(aim, throughput[policies[p]]), 1.1 * 2763, colour[policies[p]], "3 3", title[policies[p]] " (paper)")
    }
    axis(ran(aim, "binding", 3))
    frame(500, 40, "Figures 3 and 5: throughput by users; the peak of CC-NUMA on two nodes = 1")
    line(series("numa", 2, sdet, two), 1.1, "#2b6cb0", "", "CC-NUMA, 2 nodes")
    line(series("smp", 2, sdet, two), 1.1, "#c05621", "", "SMP, 2 nodes")
    line(series("numa", 1, sdet, two), 1.1, "#2b6cb0", "3 3", "CC-NUMA, 1 node")
    line(series("smp", 1, sdet, two), 1.1, "#c05621", "3 3", "SMP, 1 node")
    axis(ran(sdet, "numa", 2))
    frame(20, 260, "Figure 6: peak by nodes; one node = 1")
    line(1 " " best[2] / best[1] " " best[3] / best[1], 3, "#2b6cb0", "", "binding")
    line(1 " " figure6[2] / figure6[1] " " figure6[3] / figure6[1], 3, "#a0aec0", "", "paper")
    axis("1 2 3")
    frame(500, 260, "Figure 7: time in spin locks by nodes, % (" last " users)")
    greatest = locks["binding", last, 3] > 15 ? locks["binding", last, 3] : 15
    line(locks["binding", last, 1] " " locks["binding", last, 2] " " locks["binding", last, 3], greatest, "#2b6cb0", "", "binding")
    line("2.97 4.24 12.25", greatest, "#a0aec0", "", "paper (96 users)")
    axis("1 2 3")
    write("</svg>")
}
