<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Input;

/** The words after one of the separators :::, ::::, :::+ and ::::+. */
final class ArgumentList
{
    /** @var list<string> */
    public array $words = [];

    /**
     * @param bool $isFiles  whether the words are names of files that contain the values
     * @param bool $isLinked whether :::+ or ::::+ links these values with the values of the previous list
     */
    public function __construct(public readonly bool $isFiles, public readonly bool $isLinked) {}
}
