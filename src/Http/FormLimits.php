<?php

declare(strict_types=1);

namespace Spindle\Http;

/**
 * Limits for bodies that are parsed: forms, their files and JSON. A body that exceeds a limit is refused with 413 and
 * never truncated. The total size of a form's files is limited only by {@see HttpServerOptions::$maxBody}.
 */
final readonly class FormLimits
{
    /** @var int<1, 10000> */
    public int $depth;

    /**
     * @param int $fields fields of a form, including file inputs that were left empty
     * @param int $files  files of one form; each large file needs a descriptor
     * @param int $depth  levels of brackets in a name, and of arrays and objects in JSON
     * @param int $text   bytes of a urlencoded form or of JSON. For a multipart form: bytes of all names and values
     *                    together, without the contents of files
     * @param int $members members (keys) of all large objects in a JSON body together. An object is large if it has
     *                     more than 100 members. A client can choose keys whose hashes collide, so that PHP compares
     *                     each key with all earlier ones: 10,000 such keys take 0.1 s, 20,000 take 0.4 s
     *
     * @throws \ValueError when a number is out of its range
     */
    public function __construct(
        public int $fields = 1000,
        public int $files = 20,
        int $depth = 64,
        public int $text = 1_048_576,
        public int $members = 2000,
    ) {
        foreach (['fields' => $fields, 'files' => $files, 'text' => $text, 'members' => $members] as $name => $number) {
            if ($number < 0) {
                throw new \ValueError("The limit {$name} must be 0 or more, not {$number}");
            }
        }
        if ($depth < 1 || $depth > 10_000) {
            throw new \ValueError("The limit depth must be from 1 to 10000, not {$depth}");
        }
        $this->depth = $depth;
    }
}
