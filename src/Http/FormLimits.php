<?php

declare(strict_types=1);

namespace Spindle\Http;

/**
 * Limits for bodies that the server parses: JSON, and forms with their files. A body above a limit is refused with 413,
 * and never truncated. Only {@see HttpServerOptions::$maxBodyBytes} limits the total size of a form's files.
 */
final readonly class FormLimits
{
    /** @var int<1, 10000> */
    public int $maxDepth;

    /**
     * @param int $maxFields fields of a form, including file inputs that were left empty
     * @param int $maxFiles files of a form; each large file needs a file descriptor
     * @param int $maxDepth levels of brackets in a name, or of nested arrays and objects in JSON
     * @param int $maxTextBytes bytes of a urlencoded form or of JSON. For a multipart form: bytes of all names and
     *     values together, without the contents of files
     * @param int $maxJsonMembers members (keys) in all large objects of a JSON body together. An object is large if it
     *     has more than 100 members. A client can choose keys whose hashes collide. PHP then compares each key with all
     *     earlier keys: 10,000 such keys take 0.1 s, 20,000 take 0.4 s
     *
     * @throws \ValueError when a number is out of its range
     */
    public function __construct(
        public int $maxFields = 1000,
        public int $maxFiles = 20,
        int $maxDepth = 64,
        public int $maxTextBytes = 1_048_576,
        public int $maxJsonMembers = 2000,
    ) {
        $counts = [
            'maxFields' => $maxFields,
            'maxFiles' => $maxFiles,
            'maxTextBytes' => $maxTextBytes,
            'maxJsonMembers' => $maxJsonMembers,
        ];
        foreach ($counts as $name => $number) {
            if ($number < 0) {
                throw new \ValueError("The limit {$name} must be 0 or more, not {$number}");
            }
        }
        if ($maxDepth < 1 || $maxDepth > 10_000) {
            throw new \ValueError("The limit maxDepth must be from 1 to 10000, not {$maxDepth}");
        }
        $this->maxDepth = $maxDepth;
    }
}
