<?php

declare(strict_types=1);

namespace Spindle\Site\Reference;

use Spindle\Site\Page;

/** The pages about the public classes, made from reflection and docblocks. */
final readonly class ApiReference
{
    public ClassNames $names;

    /** @param string $snapshot content of public-api.txt, which lists the public classes */
    public function __construct(string $snapshot)
    {
        preg_match_all('/^(?:[a-z]+ )*(?:class|interface|enum|trait) (?<name>[\w\\\\]+)/m', $snapshot, $match);
        $classes = [];
        foreach ($match['name'] as $name) {
            if (!class_exists($name) && !interface_exists($name) && !trait_exists($name)) {
                throw new \LogicException("public-api.txt lists {$name}, which does not exist");
            }
            $classes[] = $name;
        }
        $this->names = new ClassNames($classes);
    }

    /** @return list<Page> one for each class, and one for each namespace */
    public function pages(): array
    {
        $pages = $rows = [];
        foreach ($this->names->classes as $name) {
            $class = new \ReflectionClass($name);
            $text = new ClassText($class, $this->names);
            $path = ClassNames::page($name);
            $pages[] = new Page($path, $text->markdown(), $class->getShortName(), $class->getShortName());
            $rows[\dirname($path)][] = "| [`{$class->getShortName()}`](/{$path}) | {$text->summary()} |";
        }
        $overview = '';
        foreach ($rows as $folder => $lines) {
            $overview .= "\n## " . ClassNames::namespaceOf($folder) . "\n\n| class | |\n|---|---|\n"
                . implode("\n", $lines) . "\n";
        }

        return [
            new Page(
                ClassNames::FOLDER . '/index.md',
                "# Classes\n\nEvery public class, made from its docblock. Other classes may change in any version.\n"
                    . $overview,
                'Classes',
            ),
            $this->options(),
            ...$pages,
        ];
    }

    /** Returns one page with all classes of options, to compare and to search. */
    private function options(): Page
    {
        $text = "# Options\n\nThe options of all classes with their defaults. Times are in seconds, sizes in bytes.\n";
        foreach ($this->names->classes as $name) {
            $class = new \ReflectionClass($name);
            if (preg_match('/(?:Options|Policy|Limits)$/', $name) === 1 && $class->isInstantiable()) {
                $text .= "\n## {$class->getShortName()}\n\n`{$name}`\n\n"
                    . (new ClassText($class, $this->names))->options();
            }
        }

        return new Page('reference/options.md', $text, 'Options', 'options');
    }
}
