<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run;

use Spindle\Cli\Internal\GivenOptions;
use Spindle\Cli\Internal\Run\Input\ArgumentList;
use Spindle\Cli\Internal\Run\Input\InputSource;
use Spindle\Cli\Internal\Run\Input\JobInputs;
use Spindle\Cli\Internal\Run\Pipe\BlockFiles;
use Spindle\Cli\Internal\Run\Pipe\BlockInputs;
use Spindle\Cli\Internal\Run\Pipe\Blocks;
use Spindle\Cli\Internal\Run\Pipe\BlockSplitter;
use Spindle\Cli\Internal\Run\Pipe\GroupEnds;
use Spindle\Cli\Internal\Run\Pipe\Header;
use Spindle\Cli\Internal\Run\Pipe\PartedFile;
use Spindle\Cli\Internal\Run\Pipe\PartInputs;
use Spindle\Cli\Internal\Run\Pipe\PatternEnds;
use Spindle\Cli\Internal\Run\Pipe\RecordEnds;
use Spindle\Cli\Internal\Run\Pipe\RoundRobinInputs;
use Spindle\Cli\Internal\Run\Pipe\SeparatorEnds;
use Spindle\Cli\Internal\Run\Pipe\TeeInputs;
use Spindle\Cli\Internal\UsageException;

final class PipeOptions
{
    private const DEFAULT_BLOCK_BYTES = 1 << 20;

    /** Default of --block with --pipe-part: ten parts per concurrent job. */
    private const DEFAULT_PARTS = '-10';

    private const BLOCK_FORM = 'a number of bytes below 2G; ' . ByteSize::UNITS;

    private const BLOCKS_ONLY = [
        'block', 'recstart', 'recend', 'regexp', 'remove-rec-sep', 'group-by', 'round-robin', 'cat', 'fifo',
    ];

    /** Options that can't be combined with blocks, each with the reason for the error message. */
    private const NOT_WITH_BLOCKS = [
        'null' => "to end records with NUL, give --recend '\\0'",
        'delimiter' => 'to end records with other characters, give --recend',
        'colsep' => 'a block has no columns without --group-by',
        'trim' => 'blocks are not changed',
        'link' => 'a block has no values',
        'eof' => 'all of the input is split into blocks',
        'shuf' => 'blocks have the order of the input',
        'pack' => 'a job has one block',
        'xargs' => 'a job has one block',
        'each-word' => 'a job has one block',
        'max-chars' => 'to set the size of a block, give --block',
        'jsonl' => 'a block is not a task',
        'queue' => 'blocks are files on this machine',
    ];
    /** Larger blocks are written to their files in pieces of about this size, except with {@see NEEDS_WHOLE_BLOCKS}. */
    private const PIECE_BYTES = 1 << 20;
    private const NEEDS_WHOLE_BLOCKS = ['round-robin', 'remove-rec-sep', 'no-run-if-empty'];
    private const NOT_WITH_GROUPS = [
        'recstart' => 'a record is a group of lines',
        'recend' => 'a record is a group of lines',
        'regexp' => 'a record is a group of lines',
        'max-lines' => 'a record is a group of lines',
        'remove-rec-sep' => 'a record is a group of lines',
    ];
    private const NOT_WITH_TEE = [
        'jsonl' => 'a task does not read standard input',
        'queue' => 'standard input is a file on this machine',
    ];
    private const NOT_WITH_ROUND_ROBIN = [
        'resume' => 'a job gets other blocks in each run',
        'resume-failed' => 'a job gets other blocks in each run',
        'cat' => 'a job has no file for its blocks',
        'fifo' => 'a job has no file for its blocks',
    ];
    private const NOT_WITH_PIPE = ['arg-file' => 'blocks are read from standard input; use < FILE, or --pipe-part'];
    private const NOT_WITH_PART = [
        'args' => 'records are not counted; use --pipe',
        'max-args' => 'records are not counted; use --pipe',
        'max-lines' => 'lines are not counted; use --pipe',
        'regexp' => 'a part ends at a fixed text; use --pipe',
        'remove-rec-sep' => 'blocks are not changed; use --pipe',
        'round-robin' => 'a job has one part; use --block -1 for one part for each job that runs at once',
        'cat' => 'a part is not copied to a file; use --pipe',
        'fifo' => 'a part is not copied to a file; use --pipe',
        'no-run-if-empty' => 'blank parts are not detected; use --pipe',
        'group-by' => 'lines are not compared; use --pipe',
    ];

    /**
     * Returns whether jobs read blocks: with --pipe or --pipe-part, but not with --tee.
     *
     * @throws UsageException when --pipe and --pipe-part are both given, or an option needs blocks and there are none
     */
    public static function areGiven(GivenOptions $given): bool
    {
        $given->rejectTogether('pipe', 'pipe-part', 'which reads standard input and not files');
        $isTee = $given->flag('tee');
        if (!$isTee && ($given->flag('pipe') || $given->flag('pipe-part'))) {
            return true;
        }
        foreach (self::BLOCKS_ONLY as $name) {
            if ($given->isGiven($name)) {
                throw new UsageException("option --{$name}: " . ($isTee
                    ? "can't be combined with --tee: there are no blocks"
                    : 'give --pipe or --pipe-part too'));
            }
        }

        return false;
    }

    /**
     * Returns $values. With --tee, returns a wrapper of $values that makes each job read all of standard input.
     *
     * @param list<ArgumentList> $lists
     *
     * @throws UsageException when an option or a combination is invalid, or standard input is a terminal or closed
     */
    public static function teed(GivenOptions $given, array $lists, JobInputs $values): JobInputs
    {
        if (!$given->flag('tee')) {
            return $values;
        }
        if (!$given->flag('pipe')) {
            throw new UsageException('option --tee: give --pipe too, and < FILE to read a file');
        }
        self::reject($given, '--tee', self::NOT_WITH_TEE);
        $files = $given->texts('arg-file');
        foreach ($lists as $list) {
            array_push($files, ...($list->isFiles ? $list->words : []));
        }
        $isRead = array_filter($files, InputSource::isStandardInput(...)) !== [];
        if (($files === [] && $lists === []) || $isRead) {
            throw new UsageException(
                'option --tee: standard input is the data of all jobs; give the arguments of the jobs after :::',
            );
        }

        return new TeeInputs(
            $values,
            InputSource::standardInput("\n"),
            new BlockFiles(areWritten: !$given->flag('dry-run')),
        );
    }

    public static function insertsFileName(GivenOptions $given): bool
    {
        return $given->flag('cat') || $given->flag('fifo');
    }

    /**
     * @param list<string>       $template
     * @param list<ArgumentList> $lists
     *
     * @throws UsageException when an option or a combination is invalid, or an input can't be opened
     */
    public static function inputs(GivenOptions $given, array $template, array $lists): JobInputs
    {
        $option = $given->flag('pipe') ? '--pipe' : '--pipe-part';
        if ($template === []) {
            throw new UsageException("option {$option}: give the command that reads the blocks, such as wc -l");
        }
        $hasColumns = $given->isGiven('group-by');
        self::reject($given, $option, array_diff_key(self::NOT_WITH_BLOCKS, $hasColumns ? ['colsep' => true] : []));
        self::reject($given, $option, $given->flag('pipe') ? self::NOT_WITH_PIPE : self::NOT_WITH_PART);
        if ($given->flag('pipe-part')) {
            return self::parts($given, $lists);
        }
        if ($lists !== []) {
            throw new UsageException(
                'option --pipe: blocks are read from standard input; remove the list of arguments',
            );
        }
        $files = new BlockFiles(areWritten: !$given->flag('dry-run'));
        if ($given->flag('round-robin')) {
            self::reject($given, '--round-robin', self::NOT_WITH_ROUND_ROBIN);

            return new RoundRobinInputs(self::blocks($given), $files);
        }

        return new BlockInputs(self::blocks($given), self::insertsFileName($given), $files);
    }

    /** @param array<string, string> $reasons by name of an option that can't be combined with $option */
    private static function reject(GivenOptions $given, string $option, array $reasons): void
    {
        foreach ($reasons as $name => $reason) {
            if ($given->isGiven($name)) {
                throw new UsageException("option --{$name}: can't be combined with {$option}: {$reason}");
            }
        }
    }

    private static function blocks(GivenOptions $given): Blocks
    {
        $ends = self::ends($given);
        if ($given->isGiven('max-args') && $given->isGiven('args')) {
            throw new UsageException('option --args: give only one of -n and -N');
        }
        $lines = self::count($given, 'max-lines');
        $records = self::count($given, 'args') ?? self::count($given, 'max-args');

        return new Blocks(
            InputSource::standardInput("\n"),
            new BlockSplitter(
                $ends,
                self::size($given) ?? self::DEFAULT_BLOCK_BYTES,
                $lines === null && $records === null ? 0 : ($lines ?? 1) * ($records ?? 1),
                $records !== null,
                array_filter(array_map($given->flag(...), self::NEEDS_WHOLE_BLOCKS)) === []
                    ? self::PIECE_BYTES
                    : \PHP_INT_MAX,
            ),
            $ends,
            Header::parse($given->text('header')),
            $given->flag('remove-rec-sep'),
            $given->flag('no-run-if-empty'),
        );
    }

    /** @param list<ArgumentList> $lists */
    private static function parts(GivenOptions $given, array $lists): PartInputs
    {
        $paths = $given->texts('arg-file');
        foreach ($lists as $list) {
            if (!$list->isFiles || $list->isLinked) {
                throw new UsageException('option --pipe-part: give files, as -a FILE or :::: FILE');
            }
            array_push($paths, ...$list->words);
        }
        if ($paths === []) {
            throw new UsageException('option --pipe-part: give a file, as -a FILE or :::: FILE');
        }
        $ends = self::ends($given);
        \assert($ends instanceof SeparatorEnds);
        $isCount = preg_match('/^-(\d{1,6})$/D', $given->text('block') ?? self::DEFAULT_PARTS, $count) === 1
            && (int) $count[1] > 0;

        return new PartInputs(
            array_map(PartedFile::open(...), $paths),
            $ends,
            $isCount ? -(int) $count[1] : self::size($given) ?? self::DEFAULT_BLOCK_BYTES,
            Header::parse($given->text('header')),
        );
    }

    private static function ends(GivenOptions $given): RecordEnds
    {
        $column = $given->text('group-by');
        if ($column !== null) {
            self::reject($given, '--group-by', self::NOT_WITH_GROUPS);
            if (preg_match('/^[1-9]\d{0,5}$/D', $column) !== 1) {
                throw UsageException::option('--group-by', $column, 'the number of a column, from 1');
            }

            return new GroupEnds($given->text('colsep') ?? '\t', (int) $column);
        }
        [$end, $start] = [$given->rawText('recend'), $given->rawText('recstart')];
        if ($given->isGiven('max-lines')) {
            if ($end !== null || $start !== null) {
                throw new UsageException('option --max-lines: lines form a record; remove --recstart and --recend');
            }

            return new SeparatorEnds("\n", '');
        }
        $end ??= $start === null ? '\n' : '';
        if ($given->flag('regexp') && $end . $start !== '') {
            return new PatternEnds($end, $start ?? '');
        }

        return new SeparatorEnds(strtr($end, InputOptions::ESCAPES), strtr($start ?? '', InputOptions::ESCAPES));
    }

    private static function count(GivenOptions $given, string $name): ?int
    {
        return $given->number($name, 'a number of records, from 1', 1);
    }

    private static function size(GivenOptions $given): ?int
    {
        $size = $given->text('block');
        if ($size === null) {
            return null;
        }
        $bytes = ByteSize::parse($size) ?? 0.0;
        if ($bytes < 1 || $bytes > BlockSplitter::MAX_BLOCK_BYTES) {
            throw UsageException::option('--block', $size, self::BLOCK_FORM);
        }

        return (int) $bytes;
    }
}
