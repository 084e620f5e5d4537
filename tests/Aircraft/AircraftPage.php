<?php

declare(strict_types=1);

namespace Spindle\Tests\Aircraft;

use PHPUnit\Framework\Assert;
use Spindle\Tests\Integration\Http\Chromium;

/** The page of the aircraft application in a browser, with the actions and observations of a user. */
final readonly class AircraftPage
{
    private const KEYS = ['Enter' => 13, 'Tab' => 9, 'Escape' => 27];

    /** Accessibility roles of elements that can be used or contain a section of the page. */
    private const USED = ['button', 'link', 'textbox', 'Date', 'dialog', 'table', 'region'];

    public function __construct(private Chromium $browser) {}

    public function awaitPlace(string $text): void
    {
        $this->await("document.getElementById('place').textContent === '{$text}'");
    }

    public function awaitState(string $state): void
    {
        $this->await("document.getElementById('state').dataset.state === '{$state}'");
    }

    public function awaitRow(string $number, ?string $title = null): void
    {
        $this->await(self::row($number, $title));
    }

    public function awaitNoRow(string $number): void
    {
        $this->await('!' . self::row($number, null));
    }

    public function awaitTold(string $text): void
    {
        $this->await(self::event($text));
    }

    /** Whether the text is in the list of events. */
    public function tells(string $text): bool
    {
        return $this->evaluate(self::event($text)) === true;
    }

    public function await(string $expression, float $seconds = 30.0): void
    {
        $this->browser->await($expression, $seconds);
    }

    public function evaluate(string $expression): mixed
    {
        return $this->browser->evaluate($expression);
    }

    /**
     * @param array<string, mixed> $parameters
     *
     * @return array<string, mixed>
     */
    public function call(string $method, array $parameters = []): array
    {
        return $this->browser->call($method, $parameters);
    }

    /** @return list<list<mixed>> number, title, serial number and assembly date of each aircraft in the table */
    public function rows(): array
    {
        /** @var list<list<mixed>> $rows */
        $rows = $this->evaluate(
            "[...document.querySelectorAll('#aircraft tbody tr')]"
            . '.map(row => [0, 1, 2, 3].map(column => row.cells[column].textContent))',
        );

        return $rows;
    }

    /** @return array<string, string> error texts of the editor, by name of the field */
    public function faults(): array
    {
        /** @var array<string, string> $faults */
        $faults = $this->evaluate(
            "Object.fromEntries([...document.querySelectorAll('#editor .field')]"
            . ".map(field => [field.querySelector('input').name, field.querySelector('.error').innerText]))",
        );

        return $faults;
    }

    public function click(string $selector): void
    {
        $this->evaluate('document.querySelector(' . json_encode($selector, \JSON_THROW_ON_ERROR) . ').click()');
    }

    /** @param array<string, string> $values values by name of the field */
    public function fill(string $form, array $values): void
    {
        $json = json_encode($values, \JSON_THROW_ON_ERROR);
        $this->evaluate(
            "Object.entries({$json}).forEach(([name, value]) => {"
            . " document.querySelector('{$form}').elements[name].value = value; })",
        );
    }

    /** @param key-of<self::KEYS> $key */
    public function press(string $key): void
    {
        $event = ['key' => $key, 'code' => $key, 'windowsVirtualKeyCode' => self::KEYS[$key]];
        $this->call(
            'Input.dispatchKeyEvent',
            ['type' => 'keyDown'] + $event + ($key === 'Enter' ? ['text' => "\r"] : []),
        );
        $this->call('Input.dispatchKeyEvent', ['type' => 'keyUp'] + $event);
    }

    public function choose(string $selector, string $file): void
    {
        /** @var array{objectId: string} $input */
        $input = $this->call('Runtime.evaluate', ['expression' => "document.querySelector('{$selector}')"])['result'];
        $this->call('DOM.setFileInputFiles', ['files' => [$file], 'objectId' => $input['objectId']]);
    }

    /** @return list<string> roles of usable elements that have no name for a screen reader */
    public function nameless(): array
    {
        /** @var list<array{role?: array{value: string}, name?: array{value: string}}> $nodes */
        $nodes = $this->call('Accessibility.getFullAXTree')['nodes'];
        $used = array_filter(
            $nodes,
            static fn(array $node): bool => \in_array($node['role']['value'] ?? '', self::USED, true),
        );
        Assert::assertGreaterThan(5, \count($used));
        $nameless = array_filter($used, static fn(array $node): bool => ($node['name']['value'] ?? '') === '');

        return array_map(static fn(array $node): string => $node['role']['value'], array_values($nameless));
    }

    /** @return list<string> complaints of the browser, without the expected `$refusals` error responses */
    public function complaints(int $refusals = 0): array
    {
        $ofNetwork = array_filter(
            $this->browser->complaints,
            static fn(string $complaint): bool => str_contains($complaint, '"source":"network"'),
        );
        Assert::assertCount($refusals, $ofNetwork, implode("\n", $ofNetwork));

        return array_values(array_diff($this->browser->complaints, $ofNetwork));
    }

    private static function row(string $number, ?string $title): string
    {
        $number = json_encode($number, \JSON_THROW_ON_ERROR);
        $title = $title === null ? '' : ' && row.cells[1].textContent === ' . json_encode($title, \JSON_THROW_ON_ERROR);

        return "[...document.querySelectorAll('#aircraft tbody tr')]"
            . ".some(row => row.cells[0].textContent === {$number}{$title})";
    }

    private static function event(string $text): string
    {
        return "[...document.querySelectorAll('#events span')].some(event => event.textContent === '{$text}')";
    }
}
