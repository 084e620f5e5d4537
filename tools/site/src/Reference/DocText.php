<?php

declare(strict_types=1);

namespace Spindle\Site\Reference;

/** Turns text and types of docblocks into Markdown with links. */
final readonly class DocText
{
    /** @param \ReflectionClass<object> $context class with the docblocks */
    public function __construct(private ClassNames $names, private \ReflectionClass $context) {}

    public function text(string $text): string
    {
        $linked = preg_replace_callback(
            '/\{@see\s+([^}\s]+)\s*\}/',
            function (array $match): string {
                $name = ltrim($match[1], '\\');
                $shown = (string) preg_replace(['/^(?:self|static)::/', '/^.*\\\\/'], '', $name);
                $link = $this->names->link($name, $this->context);

                return $link === null ? "`{$shown}`" : "[`{$shown}`]({$link})";
            },
            $text,
        );

        return (string) preg_replace_callback(
            '/`[^`]*`|<|\{\{/',
            static fn(array $match): string => ['<' => '&lt;', '{{' => '{&#123;'][$match[0]] ?? $match[0],
            (string) $linked,
        );
    }

    /** Returns the text as the end of a sentence or as a cell of a table. */
    public function line(string $text): string
    {
        return strtr((string) preg_replace('/\s+/', ' ', $this->text($text)), ['|' => '\\|']);
    }

    /** Returns a type as code. A type that is one class, or one class or null, is a link. */
    public function type(string $type): string
    {
        $code = '`' . strtr(self::shortened($type), ['|' => '\\|']) . '`';
        $class = (string) preg_replace('/^\?|\|null$|^null\||<.*/', '', $type);
        $link = $type === '' ? null : $this->names->link($class, $this->context);

        return $link === null ? ($type === '' ? '' : $code) : "[{$code}]({$link})";
    }

    /** Removes namespaces. */
    public static function shortened(string $type): string
    {
        return (string) preg_replace('/\\\\?(?:\w+\\\\)+(?=\w)|(?<![\w\\\\])\\\\(?=\w)/', '', $type);
    }
}
