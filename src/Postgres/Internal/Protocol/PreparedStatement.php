<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Protocol;

use Spindle\Postgres\Internal\Columns;
use Spindle\Postgres\Internal\SessionChanges;
use Spindle\Postgres\Internal\Types\Types;
use Spindle\Postgres\InvalidParameterException;

/** A statement whose types the server has described. Encodes its parameters, and the messages that execute it. */
final class PreparedStatement
{
    /** Part of Bind's payload after the portal's name: the statement's name and the formats of the parameters. */
    private readonly string $target;

    /** Beginning of Bind's payload, up to the values, for the unnamed portal. */
    private readonly string $unnamedPortal;

    /** End of Bind's payload, after the values, followed by Execute and Sync. */
    private readonly string $ending;

    /** Number of bytes of Bind's length field and the result formats. The length of a Bind message includes both. */
    private readonly int $constantBytes;

    /** Number of values that {@see request()} accepts; -1 if the statement has no name, so that no list is accepted. */
    private readonly int $valueCount;

    private readonly string $resultFormats;

    /** Number of the last use, from the counter of {@see PreparedStatements}. */
    public int $lastUse = 0;

    /**
     * @param string $name '' for a statement that is prepared at each execution
     * @param list<int> $parameterTypes type OIDs of the parameters
     * @param Columns|null $columns null for a statement without rows
     * @param bool $changesSession whether the text may change the session or what SQL texts mean: {@see SessionChanges}
     * @param bool $mustNotRepeat whether an error may leave effects of the statement: {@see Exchange::$mustNotRepeat}
     */
    public function __construct(
        public readonly string $name,
        public readonly array $parameterTypes,
        public readonly ?Columns $columns,
        private readonly Types $types,
        public readonly bool $changesSession,
        public readonly bool $mustNotRepeat,
    ) {
        $this->target = "{$name}\0" . self::formats(array_map(Types::kind(...), $parameterTypes));
        // A statement without a name may have other columns at its next execution. Values of all types exist as text.
        $this->resultFormats = $name === '' ? "\0\0" : $columns->formats ?? "\0\0";
        $this->unnamedPortal = "\0{$this->target}" . pack('n', \count($parameterTypes));
        $this->ending = $this->resultFormats . FrontendMessages::EXECUTE . FrontendMessages::SYNC;
        $this->constantBytes = \strlen($this->resultFormats) + 4;
        $this->valueCount = $name === '' ? -1 : \count($parameterTypes);
    }

    /**
     * @param array<mixed> $values
     *
     * @return list<string|null> encoded values to pass to {@see bind()}
     *
     * @throws InvalidParameterException
     */
    public function encode(#[\SensitiveParameter] array $values): array
    {
        if (\count($values) !== \count($this->parameterTypes) || !array_is_list($values)) {
            throw InvalidParameterException::count(\count($values), \count($this->parameterTypes));
        }
        $encoded = [];
        foreach ($this->parameterTypes as $index => $oid) {
            $value = $values[$index];
            $encoded[] = \is_int($value) ? (string) $value : $this->types->encode($oid, $value, $index + 1);
        }

        return $encoded;
    }

    /**
     * Returns Bind, Execute and Sync as one string. Execute asks for all rows. The code of encode() and bind() is
     * inlined, because this method runs for each statement, and a PHP call takes as long as encoding an integer.
     *
     * @param array<mixed> $values
     *
     * @return string|null null for a large value, a wrong number of values, or a statement without a name. In these
     *     cases use {@see encode()}, which reports a wrong number, and {@see bind()}
     */
    public function request(#[\SensitiveParameter] array $values): ?string
    {
        if (\count($values) !== $this->valueCount || !array_is_list($values)) {
            return null;
        }
        $body = $this->unnamedPortal;
        foreach ($this->parameterTypes as $index => $oid) {
            $value = $values[$index];
            $text = \is_int($value) ? (string) $value : $this->types->encode($oid, $value, $index + 1);
            if ($text === null) {
                $body .= "\xFF\xFF\xFF\xFF";
                continue;
            }
            $length = \strlen($text);
            if ($length < 256) {
                $body .= "\0\0\0" . \chr($length) . $text;
            } elseif ($length < FrontendMessages::LARGE_BYTES) {
                $body .= pack('N', $length) . $text;
            } else {
                return null;
            }
        }

        return 'B' . pack('N', \strlen($body) + $this->constantBytes) . $body . $this->ending;
    }

    /**
     * @param list<string|null> $values
     *
     * @return list<string> parts of the message; each large value is a separate part
     */
    public function bind(#[\SensitiveParameter] array $values, string $portal = ''): array
    {
        return FrontendMessages::bind("{$portal}\0{$this->target}", $values, $this->resultFormats);
    }

    /**
     * Returns messages to send ahead of Bind: '' for a statement with a name. A statement without a name is prepared
     * again, because other statements may have replaced it. The parameters keep the types for which values are encoded.
     * The columns may have got other types, so the server describes them again: {@see Preparation::register()}.
     */
    public function preparation(string $sql): string
    {
        return $this->name === ''
            ? FrontendMessages::parse('', $sql, $this->parameterTypes) . FrontendMessages::describe('')
            : '';
    }

    /** @param list<int> $kinds values of the kind BYTEA are sent in binary format, all others as text */
    private static function formats(array $kinds): string
    {
        return \in_array(Types::BYTEA, $kinds, true)
            ? pack(
                'n*',
                \count($kinds),
                ...array_map(static fn(int $kind): int => $kind === Types::BYTEA ? 1 : 0, $kinds),
            )
            : "\0\0";
    }
}
