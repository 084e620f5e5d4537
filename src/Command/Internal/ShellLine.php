<?php

declare(strict_types=1);

namespace Spindle\Command\Internal;

/**
 * Splits simple shell lines into words, so that their programs can be started without a shell.
 *
 * GNU make also starts simple lines without a shell (src/job.c, construct_command_argv_internal). The words of
 * a simple line have only plain characters and quoted text without expansions. The first word must not be a built-in, a
 * reserved word (POSIX Shell Command Language, 2.4 and 2.14) or an assignment, because a shell itself executes these.
 */
final class ShellLine
{
    /** A line of words that contain only plain characters, '...', and "..." without expansions. */
    private const PLAIN_LINE_PATTERN = '~^[ \t]*(?:(?:[\w@%+=:,./-]|\'[^\']*+\'|"[^"$`\\\\]*+")++[ \t]*)++$~D';

    private const WORD_PATTERN = '~(?:[\w@%+=:,./-]|\'[^\']*+\'|"[^"]*+")++~';

    /** First word of a simple line: plain characters except =. The first character is a letter or one of _ . / @ + */
    private const PROGRAM_PATTERN = '~^[a-zA-Z_./@+][\w@%+:,./-]*$~D';

    /** Words that need a shell: reserved words, and built-ins of dash, of bash in POSIX mode and of other shells. */
    private const SHELL_WORDS = [
        'alias' => 1, 'bg' => 1, 'bind' => 1, 'break' => 1, 'builtin' => 1, 'caller' => 1, 'case' => 1, 'cd' => 1,
        'chdir' => 1, 'command' => 1, 'compgen' => 1, 'complete' => 1, 'compopt' => 1, 'continue' => 1, 'coproc' => 1,
        'declare' => 1, 'dirs' => 1, 'disown' => 1, 'do' => 1, 'done' => 1, 'echo' => 1, 'elif' => 1, 'else' => 1,
        'enable' => 1, 'esac' => 1, 'eval' => 1, 'exec' => 1, 'exit' => 1, 'export' => 1, 'false' => 1, 'fc' => 1,
        'fg' => 1, 'fi' => 1, 'for' => 1, 'function' => 1, 'getopts' => 1, 'hash' => 1, 'help' => 1, 'history' => 1,
        'if' => 1, 'in' => 1, 'jobs' => 1, 'kill' => 1, 'let' => 1, 'local' => 1, 'logout' => 1, 'mapfile' => 1,
        'popd' => 1, 'print' => 1, 'printf' => 1, 'pushd' => 1, 'pwd' => 1, 'read' => 1, 'readarray' => 1,
        'readonly' => 1, 'return' => 1, 'select' => 1, 'set' => 1, 'shift' => 1, 'shopt' => 1, 'source' => 1,
        'suspend' => 1, 'test' => 1, 'then' => 1, 'time' => 1, 'times' => 1, 'trap' => 1, 'true' => 1, 'type' => 1,
        'typeset' => 1, 'ulimit' => 1, 'umask' => 1, 'unalias' => 1, 'unset' => 1, 'until' => 1, 'wait' => 1,
        'whence' => 1, 'while' => 1, '.' => 1, ':' => 1,
    ];

    /** @return non-empty-list<string>|null the program and its arguments; null when a shell must run the line */
    public static function split(string $line): ?array
    {
        if (preg_match(self::PLAIN_LINE_PATTERN, $line) !== 1) {
            return null;
        }
        if (strpbrk($line, '\'"') === false) {
            $words = preg_split('/[ \t]+/', trim($line, " \t"));
        } else {
            preg_match_all(self::WORD_PATTERN, $line, $matches);
            $words = array_map(self::unquote(...), $matches[0]);
        }
        if (
            $words === false
            || $words === []
            || isset(self::SHELL_WORDS[$words[0]])
            || preg_match(self::PROGRAM_PATTERN, $words[0]) !== 1
        ) {
            return null;
        }

        return $words;
    }

    private static function unquote(string $word): string
    {
        return (string) preg_replace('~\'([^\']*)\'|"([^"]*)"~', '$1$2', $word);
    }
}
