<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run;

use Spindle\Cli\Internal\GivenOptions;
use Spindle\Cli\Internal\Run\Input\ArgumentList;
use Spindle\Cli\Internal\Run\Input\CommandLimit;
use Spindle\Cli\Internal\Run\Input\CommandTemplate;
use Spindle\Cli\Internal\Run\Input\InputSource;
use Spindle\Cli\Internal\Run\Input\InputSources;
use Spindle\Cli\Internal\Run\Input\JobFormat;
use Spindle\Cli\Internal\Run\Input\JobInputs;
use Spindle\Cli\Internal\Run\Input\LineFormat;
use Spindle\Cli\Internal\Run\Input\Packing;
use Spindle\Cli\Internal\Run\Input\RecordFields;
use Spindle\Cli\Internal\Run\Input\Replacement;
use Spindle\Cli\Internal\Run\Input\ReplacementStrings;
use Spindle\Cli\Internal\Run\Input\ValueInputs;
use Spindle\Cli\Internal\UsageException;

/** Reads the options that define the jobs: the command, the sources of its values, and the values per command. */
final class InputOptions
{
    /** Options that respell a replacement string, by the text between the braces of the usual spelling: '.' for {.}. */
    private const SPELLINGS = [
        '' => 'replace',
        '.' => 'er',
        '/' => 'bnr',
        '//' => 'dnr',
        '/.' => 'bner',
        Replacement::SEQUENCE => 'seqreplace',
        Replacement::SLOT => 'slotreplace',
    ];

    public const ESCAPES = ['\n' => "\n", '\t' => "\t", '\r' => "\r", '\0' => "\0", '\\\\' => '\\'];

    /**
     * @param ReplacementStrings $strings      replacement strings of the command and of options such as --results
     * @param list<string>       $columns      names of columns; empty if columns have no names
     * @param int|null           $valuesPerRow values in each row of {@see InputSources}; null if the number can vary
     */
    private function __construct(
        public readonly JobInputs $inputs,
        public readonly JobFormat $format,
        public readonly ReplacementStrings $strings,
        public readonly array $columns,
        public readonly ?int $valuesPerRow,
    ) {}

    /**
     * @param list<string> $words the command, and the lists of arguments and files
     *
     * @throws UsageException when an option or a combination is invalid, or an input can't be opened
     */
    public static function of(GivenOptions $given, array $words): self
    {
        [$template, $lists] = self::lists($given, $words);
        if ($template !== [] && $given->flag('jsonl')) {
            throw new UsageException('option --jsonl: the commands come from the input; remove the command template');
        }
        if (PipeOptions::areGiven($given)) {
            $strings = self::strings($given);

            return new self(
                PipeOptions::inputs($given, $template, $lists),
                self::template($given, $template, $strings, addsValues: PipeOptions::insertsFileName($given)),
                $strings,
                [],
                null,
            );
        }
        $sources = self::sources($given, $lists);
        $columns = self::columns($given, $sources);
        $maxRecords = self::maxRecords($given);
        $hasSeveralValues = $maxRecords !== 1 || $sources->hasColumns();
        $strings = self::strings($given, $columns);
        $format = self::format($given, $template, $strings, $hasSeveralValues);
        $packing = self::packing($given, $maxRecords, $format);

        return new self(
            PipeOptions::teed($given, $lists, new ValueInputs($sources, $packing, $format)),
            $format,
            $strings,
            $columns,
            $sources->width(),
        );
    }

    /**
     * @param list<string> $words
     *
     * @return array{list<string>, list<ArgumentList>} the template, and the lists after it
     */
    private static function lists(GivenOptions $given, array $words): array
    {
        $arguments = $given->text('arg-sep') ?? ':::';
        $files = $given->text('arg-file-sep') ?? '::::';
        $template = $lists = [];
        foreach ($words as $word) {
            $list = match ($word) {
                $arguments => new ArgumentList(isFiles: false, isLinked: false),
                $files => new ArgumentList(isFiles: true, isLinked: false),
                "{$arguments}+" => new ArgumentList(isFiles: false, isLinked: true),
                "{$files}+" => new ArgumentList(isFiles: true, isLinked: true),
                default => null,
            };
            if ($list !== null) {
                $lists[] = $list;
            } elseif ($lists === []) {
                $template[] = $word;
            } else {
                end($lists)->words[] = $word;
            }
        }

        return [$template, $lists];
    }

    /** @param list<ArgumentList> $lists */
    private static function sources(GivenOptions $given, array $lists): InputSources
    {
        self::rejectRepeatedInput($given, $lists);
        $separator = self::separator($given);
        $groups = array_map(
            static fn(string $path): array => [InputSource::file($path, $separator)],
            $given->texts('arg-file'),
        );
        $first = \count($groups);
        foreach ($lists as $list) {
            $sources = $list->isFiles
                ? array_map(static fn(string $path): InputSource => InputSource::file($path, $separator), $list->words)
                : [self::arguments($given, $list->words, $separator)];
            foreach ($sources as $source) {
                if ($list->isLinked && \count($groups) > $first) {
                    $groups[\count($groups) - 1][] = $source;
                } else {
                    $groups[] = [$source];
                }
            }
        }
        if ($groups === []) {
            $groups = [[InputSource::standardInput($separator)]];
        }
        $fields = RecordFields::of(
            $given->text('colsep'),
            $given->text('trim'),
            $given->text('eof'),
            $given->flag('no-run-if-empty'),
            $given->text('max-lines') !== null,
        );
        if ($given->flag('jsonl') && (\count($groups) > 1 || $given->text('colsep') !== null)) {
            throw new UsageException('option --jsonl: give one input, and no --colsep');
        }

        $isLinked = $given->flag('link');

        return new InputSources(
            $isLinked ? [array_merge(...$groups)] : $groups,
            $fields,
            repeatsShorter: $isLinked,
            isShuffled: self::isShuffled($given),
        );
    }

    /**
     * Rejects standard input that is named twice, because each of the two sources would get only a part of the bytes.
     *
     * @param list<ArgumentList> $lists
     */
    private static function rejectRepeatedInput(GivenOptions $given, array $lists): void
    {
        $paths = $given->texts('arg-file');
        foreach ($lists as $list) {
            array_push($paths, ...($list->isFiles ? $list->words : []));
        }
        $paths = array_values(array_filter($paths, InputSource::isStandardInput(...)));
        if (\count($paths) > 1) {
            throw new UsageException(
                "option --arg-file: '{$paths[0]}' and '{$paths[1]}' are both standard input, which can be read only"
                . ' once; write it to a file, and give that file',
            );
        }
    }

    private static function isShuffled(GivenOptions $given): bool
    {
        foreach (['resume', 'resume-failed'] as $name) {
            $given->rejectTogether($name, 'shuf', 'because the jobs have other numbers in each run');
        }

        return $given->flag('shuf');
    }

    /**
     * @param list<string>     $words
     * @param non-empty-string $separator
     */
    private static function arguments(GivenOptions $given, array $words, string $separator): InputSource
    {
        foreach ($words as $word) {
            if ($given->text('delimiter') !== null && str_contains($word, $separator)) {
                throw new UsageException(
                    "option --delimiter: the argument '{$word}' is not split, because it is not read from a file;"
                    . ' give several arguments',
                );
            }
        }

        return InputSource::arguments($words);
    }

    /** @return non-empty-string */
    private static function separator(GivenOptions $given): string
    {
        $delimiter = $given->text('delimiter');
        if ($delimiter === null) {
            return $given->flag('null') ? "\0" : "\n";
        }
        if (preg_match('/^\\\\(?:x[0-9a-f]+|[0-7]{2,}|[abfv])/i', $delimiter) === 1) {
            throw UsageException::option('--delimiter', $delimiter, 'characters, or one of \n, \t, \r and \0');
        }
        $separator = strtr($delimiter, self::ESCAPES);

        return $separator === '' ? "\n" : $separator;
    }

    /** @return list<string> the names of the columns */
    private static function columns(GivenOptions $given, InputSources $sources): array
    {
        $header = $given->text('header');
        if ($header !== null && $header !== ':') {
            throw UsageException::option('--header', $header, 'a colon, for names in the first line of the input');
        }

        return $header === null ? [] : $sources->header();
    }

    /** Returns the maximum number of records in a command, as {@see Packing} defines it. */
    private static function maxRecords(GivenOptions $given): ?int
    {
        $maxRecords = null;
        foreach (['max-args', 'args', 'max-lines'] as $name) {
            $number = $given->number($name, 'a number of inputs for one command');
            if ($number !== null && $maxRecords !== null) {
                throw new UsageException("option --{$name}: give only one of -n, -N and -L");
            }
            $maxRecords ??= $number;
        }
        $fillsCommands = self::fillsCommands($given);
        if ($given->flag('jsonl') && ($fillsCommands || $maxRecords !== null)) {
            throw new UsageException('option --jsonl: a line is one command; remove -m, -X, -n, -N and -L');
        }

        return $maxRecords ?? ($fillsCommands ? null : 1);
    }

    private static function fillsCommands(GivenOptions $given): bool
    {
        return $given->flag('pack') || $given->flag('xargs') || $given->flag('each-word');
    }

    private static function packing(GivenOptions $given, ?int $maxRecords, JobFormat $format): Packing
    {
        $isRemote = $given->text('queue') !== null;
        $limit = match (true) {
            $isRemote => CommandLimit::ARGUMENT_BYTES,
            $format->isShellLine() => CommandLimit::shellLineBytes(),
            default => CommandLimit::bytes(),
        };
        $bytes = $given->number('max-chars', "a number of bytes, at most {$limit}", 1, $limit);

        return new Packing(
            $maxRecords,
            $bytes ?? ($maxRecords === null ? min(CommandLimit::PACKED_BYTES, $limit) : $limit),
            $limit,
            isSpread: $given->flag('pack') || $given->flag('each-word'),
            isLimited: $bytes !== null,
        );
    }

    /** @param list<string> $template */
    private static function format(
        GivenOptions $given,
        array $template,
        ReplacementStrings $strings,
        bool $hasSeveralValues,
    ): JobFormat {
        if ($given->flag('jsonl')) {
            return new LineFormat(isJson: true);
        }
        if ($template === []) {
            return $given->flag('quote')
                ? throw new UsageException('option --quote: without a command, a shell reads each line; remove --quote')
                : new LineFormat(isJson: false);
        }
        if (self::fillsCommands($given) && $strings->usesPosition(implode(' ', $template))) {
            throw new UsageException(
                'the command contains the position of a value, such as {1}, but with -m, -X and --xargs the number of'
                . ' values is not known; give a number with -N',
            );
        }

        return self::template($given, $template, $strings, hasSeveralValues: $hasSeveralValues);
    }

    /** @param list<string> $columns */
    private static function strings(GivenOptions $given, array $columns = []): ReplacementStrings
    {
        $spellings = array_filter(
            array_map($given->text(...), self::SPELLINGS),
            static fn(?string $spelling): bool => $spelling !== null,
        );

        return new ReplacementStrings($spellings, $columns);
    }

    /** @param list<string> $template */
    private static function template(
        GivenOptions $given,
        array $template,
        ReplacementStrings $strings,
        bool $hasSeveralValues = false,
        bool $addsValues = true,
    ): CommandTemplate {
        return CommandTemplate::fromWords(
            $template,
            $strings,
            $given->flag('quote'),
            repeatsWords: $given->flag('each-word')
                || $given->text('args') !== null
                || $given->text('max-lines') !== null,
            hasSeveralValues: $hasSeveralValues,
            addsValues: $addsValues,
        );
    }
}
