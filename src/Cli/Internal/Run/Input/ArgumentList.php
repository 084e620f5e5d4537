<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Input;

/** The words after one of the separators :::, ::::, :::+ and ::::+. */
final class ArgumentList
{
    /** @var list<string> */
    public array $words = [];

    /**
     * @param bool $isFiles  whether the words are names of files with values
     * @param bool $isLinked whether the values are linked with those of the list before, by :::+ or ::::+
     */
    public function __construct(public readonly bool $isFiles, public readonly bool $isLinked) {}
}
